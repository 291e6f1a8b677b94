"""Let Hermes make a cache anew that it cannot start with."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Remove, Safety, Step, fix, snapshot


@fix(
    id="set-aside-cache",
    codes=["RESPSTORE", "DB-NOTADB", "DB-TRUNCATED", "DB-MALFORMED"],
    safety=Safety.SAFE,
)
def set_aside_cache(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the unreadable cache into the vault; Hermes makes an empty one at the next start."""
    path = probes.home / finding.subject
    for suffix in ("-wal", "-shm", "-journal", ""):
        part = path.with_name(path.name + suffix)
        if snapshot(part).kind != "absent":
            yield Remove(part, why="it is a cache that cannot be read")
