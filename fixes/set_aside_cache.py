"""Remove an unreadable cache database, which Hermes creates again at its next start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="set-aside-cache",
    codes=["RESPSTORE", "DB-NOTADB", "DB-TRUNCATED", "DB-MALFORMED"],
    safety=Safety.SAFE,
)
def set_aside_cache(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove the unreadable cache; Hermes creates a new one."""
    from hermes_doctor.api import Remove

    path = probes.home / finding.subject
    for suffix in ("-wal", "-shm", "-journal", ""):
        part = path.with_name(path.name + suffix)
        if snapshot(part).kind != "absent":
            yield Remove(part, why="it is a cache and cannot be read")
