"""Replace a config.yaml that does not parse by its newest copy that does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="restore-config", codes=["CFG-YAML"], safety=Safety.CONFIRM)
def restore_config(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Replace config.yaml by the newest copy of it that parses."""
    from hermes_doctor.api import ReplaceFile

    config, copies = probes.config(), probes.config_copies()
    if config is None or config.fault is None:
        return
    if not copies:
        raise CannotFix("no copy of config.yaml that parses was found; mend the line by hand")
    newest = copies[0]
    yield ReplaceFile(
        config.path,
        newest.data,
        why=text(
            "by {newest} of {modified:%Y-%m-%d %H:%M} UTC, the newest that parses",
            newest=newest.label,
            modified=newest.modified,
        ),
        expect=config.snapshot,
        before=config.data,
    )
