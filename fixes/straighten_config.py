"""Replace lookalike spaces and remove curly quotes in config.yaml."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Put, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="straighten-config", codes=["CFG-LOOKALIKE"], safety=Safety.CONFIRM)
def straighten_config(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Replace lookalike spaces and quotes in config.yaml."""
    from hermes_doctor.api import ReplaceFile, edit_config, lookalikes, reload, without_blanks

    config = probes.config()
    if config is None or config.fault:
        return
    for one in lookalikes(probes.resolved().world.document):
        if one.path != finding.data["path"]:
            continue
        if not one.blank:
            yield from edit_config(probes, "remove the curly quotes", Put(one.path, one.value))
        else:
            made = without_blanks(config.data)
            if made is None:
                raise CannotFix(
                    "With plain spaces config.yaml would not parse. Correct it by hand."
                )
            why = "indent it with plain spaces"
            yield ReplaceFile(config.path, made, why, config.snapshot, before=config.data)
        yield from reload(probes, "platform")
        return
