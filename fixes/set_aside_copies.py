"""Take away what piled up of a database that was damaged."""

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, MoveAside, Probes, Safety, Step, fix, snapshot


@fix(id="set-aside-copies", codes=["DB-BACKUP-CLUTTER"], safety=Safety.CONFIRM)
def set_aside_copies(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move all copies but the newest into the vault; pruning the vault gives the space back."""
    found = False
    for path in finding.data["older"]:
        if snapshot(path).kind == "file":
            found = True
            yield MoveAside(path, why="a newer copy of the damaged database is kept in its place")
    if not found:
        raise CannotFix("the copies are gone already")
