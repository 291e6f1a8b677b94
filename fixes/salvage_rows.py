"""Save every row of a damaged or missing database that can still be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="salvage-rows",
    codes=[
        "DB-NOTADB",
        "DB-EMPTY",
        "DB-GONE",
        "DB-TRUNCATED",
        "DB-MALFORMED",
        "DB-INDEX",
        "DB-FTS-CORRUPT",
        "KANBAN-CORRUPT",
        "RESPSTORE",
        "DB-WAL-BROKEN",
        "DB-JOURNAL",
    ],
    safety=Safety.CONFIRM,
)
def salvage_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save all readable rows into a new database."""
    from hermes_doctor.api import database_repair

    path = probes.home / finding.subject
    rungs, why = ["rows"], "save all readable rows into a new database"
    if finding.code in ("DB-EMPTY", "DB-GONE"):
        rungs = ["layers", "rows", "copies"]
    elif finding.data.get("kind") == "other":
        rungs = ["layers", "copies", "rows", "log"]
        why = "restore its newest sound copy with the rows of its write-ahead log"
    yield database_repair(probes, path, rungs, why=why)
