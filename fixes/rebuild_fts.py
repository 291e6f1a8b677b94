"""Make the full-text search of a database anew."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, database_repair, fix


@fix(id="rebuild-fts", codes=["DB-FTS-CORRUPT"], safety=Safety.SAFE, then="salvage-rows")
def rebuild_fts(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Take the full-text tables out on a copy and fill new ones from the real rows."""
    path = probes.home / finding.subject
    yield database_repair(
        probes, path, ["full text"], why="make its full-text search anew from its rows"
    )
