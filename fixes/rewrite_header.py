"""Write the header of a database anew."""

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, database_repair, fix


@fix(
    id="rewrite-header",
    codes=["DB-NOTADB", "DB-MALFORMED", "KANBAN-CORRUPT", "RESPSTORE"],
    safety=Safety.SAFE,
)
def rewrite_header(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the header anew on a copy; where that is not enough, save the rows."""
    path = probes.home / finding.subject
    yield database_repair(probes, path, ["header", "rows"], why="write its header anew")
