"""Give back the pages of a database that nothing uses."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, ReplaceDatabase, Safety, Step, compact, fix, snapshot


@fix(id="compact-database", codes=["DB-BLOAT"], safety=Safety.SAFE)
def compact_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the database anew without its unused pages."""
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, compact, why="write it anew without its unused pages", expect=snapshot(path)
    )
