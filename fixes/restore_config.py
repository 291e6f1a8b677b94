"""Replace a config.yaml that does not parse by its newest copy that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, clock, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="restore-config", codes=["CFG-YAML"], safety=Safety.CONFIRM)
def restore_config(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the newest config.yaml that parses."""
    from hermes_doctor.api import ReplaceFile

    config, copies = probes.config(), probes.config_copies()
    if config is None or config.fault is None:
        return
    if not copies:
        raise CannotFix("No intact copy of config.yaml was found. Correct the line by hand.")
    newest = copies[0]
    yield ReplaceFile(
        config.path,
        newest.data,
        why=text(
            "restore {copy} of {time}, the newest that parses",
            copy=newest.label,
            time=clock(newest.modified),
        ),
        expect=config.snapshot,
        before=config.data,
    )
