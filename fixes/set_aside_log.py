"""Take a log away that does not belong to its database."""

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, MoveAside, Probes, Safety, Step, fix, snapshot


@fix(id="set-aside-log", codes=["DB-WAL-STALE", "DB-JOURNAL"], safety=Safety.CONFIRM)
def set_aside_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the stale log out of the way, so that it is not replayed over a sound database."""
    path = probes.home / finding.subject
    found = False
    for suffix in ("-wal", "-journal", "-shm"):
        log = path.with_name(path.name + suffix)
        if snapshot(log).kind == "file":
            found = True
            yield MoveAside(log, why="it is not of this database, which is sound without it")
    if not found:
        raise CannotFix("the log is gone already")
