"""Make files with secrets accessible to their owner only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="tighten-modes", codes=["PERM-SECRETS"], safety=Safety.SAFE)
def tighten_modes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let only the owner read the file."""
    from hermes_doctor.api import SetMode, refuse_managed

    snapshot = finding.data["snapshot"]
    if snapshot.mode & 0o077:
        refuse_managed(probes)
        yield SetMode(
            finding.data["path"], 0o600, why="let only its owner read it", expect=snapshot
        )
