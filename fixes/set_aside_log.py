"""Move a write-ahead log (-wal) or journal aside that would damage its database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_PARTS = {"DB-WAL-STALE": ("-wal", "-shm"), "DB-JOURNAL": ("-journal",)}
"""The files that each finding may move, and no others. SQLite creates an index (-shm) again
from its write-ahead log."""
_HINT = (
    "These rows are not added to the database. To add them, too, name both codes before",
    "Hermes starts: hermes-doctor fix DB-WAL-STALE DB-WAL-ROWS --apply",
)


@fix(id="set-aside-log", codes=list(_PARTS), safety=Safety.CONFIRM)
def set_aside_log(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move a wrong write-ahead log or journal aside."""
    from hermes_doctor.api import MoveAside, set_log_aside

    path = probes.condition(probes.home / finding.subject).files.path
    parts = [path.with_name(path.name + suffix) for suffix in _PARTS[finding.code]]
    there = [part for part in parts if snapshot(part).kind == "file"]
    if not there:
        raise CannotFix("The file no longer exists. Nothing to do.")
    if finding.code == "DB-WAL-STALE":
        yield from set_log_aside(probes, path, _HINT)
        return
    for part in there:
        yield MoveAside(part, why="it does not belong to this database")
