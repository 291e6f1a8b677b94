"""Take bad rows out of the store of API responses."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, ReplaceDatabase, Safety, Step, evict, fix, snapshot


@fix(id="evict-responses", codes=["RESPSTORE"], safety=Safety.SAFE)
def evict_responses(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Evict responses that cannot be read back and conversations that lead to none."""
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, evict, why="evict the rows that cannot be read", expect=snapshot(path)
    )
