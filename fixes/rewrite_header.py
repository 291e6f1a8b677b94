"""Write the header of a database anew."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, database_repair, fix


@fix(
    id="rewrite-header",
    codes=["DB-NOTADB", "DB-MALFORMED", "KANBAN-CORRUPT", "RESPSTORE"],
    safety=Safety.SAFE,
    then="salvage-rows",
)
def rewrite_header(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the header anew, on a copy, from what the rest of the file says."""
    path = probes.home / finding.subject
    yield database_repair(probes, path, ["header"], why="write its header anew")
