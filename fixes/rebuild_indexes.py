"""Make the indexes of a database anew."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, database_repair, fix


@fix(id="rebuild-indexes", codes=["DB-INDEX"], safety=Safety.SAFE, then="salvage-rows")
def rebuild_indexes(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Make the indexes anew from the rows, on a copy."""
    path = probes.home / finding.subject
    yield database_repair(probes, path, ["indexes"], why="make its indexes anew from its rows")
