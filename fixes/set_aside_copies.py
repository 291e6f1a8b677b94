"""Move all copies of a damaged database except the newest one into the vault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="set-aside-copies", codes=["DB-BACKUP-CLUTTER"], safety=Safety.CONFIRM)
def set_aside_copies(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move old copies of the damaged database to the vault."""
    from hermes_doctor.api import MoveAside

    found = False
    for path in finding.data["older"]:
        if snapshot(path).kind == "file":
            found = True
            yield MoveAside(path, why="a newer copy stays")
    if not found:
        raise CannotFix("The copies no longer exist. Nothing to do.")
