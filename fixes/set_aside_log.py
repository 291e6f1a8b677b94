"""Take a log or a journal away that does not belong to its database."""

from collections.abc import Iterator

from hermes_doctor.api import CannotFix, Finding, MoveAside, Probes, Safety, Step, fix, snapshot

_PARTS = {"DB-WAL-STALE": ("-wal", "-shm"), "DB-JOURNAL": ("-journal",)}
"""What each finding has proven to be foreign; nothing else may move. An index (-shm) is made anew
from its log."""


@fix(id="set-aside-log", codes=list(_PARTS), safety=Safety.CONFIRM)
def set_aside_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the foreign log or journal out of the way, so that it is not played over a database."""
    path = probes.condition(probes.home / finding.subject).files.path
    parts = [path.with_name(path.name + suffix) for suffix in _PARTS[finding.code]]
    there = [part for part in parts if snapshot(part).kind == "file"]
    if not there:
        raise CannotFix("it is gone already")
    for part in there:
        yield MoveAside(part, why="it is of another database, or of another life of this one")
