"""Move a platform to a free port when another platform is set to the same port."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Finding, Probes, Put, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="move-port", codes=["PLATFORM-PORT-CLASH"], safety=Safety.CONFIRM)
def move_port(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move one of the two platforms to a free port."""
    from hermes_doctor.api import edit_config, edit_env, reload

    variable, port = finding.data["variable"], finding.data["port"]
    why = f"use port {port}, which is free"
    if variable:
        yield from edit_env(probes, why, Assign(variable, str(port)))
    else:
        yield from edit_config(probes, why, Put(finding.data["path"], port))
    yield from reload(probes, "platform")
