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
    then="start-empty",
)
def salvage_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Save all readable rows into a new database."""
    from hermes_doctor.api import database_repair

    path = probes.home / finding.subject
    lost = finding.code in ("DB-EMPTY", "DB-GONE") or finding.data.get("kind") == "other"
    log = finding.data.get("log", True)
    if lost and not log:
        rungs = ["damaged copies"]
        why = "save all readable rows of its damaged copy into a new database"
    elif finding.data.get("kind") == "other":
        rungs = ["layers", "copies", "rows", "log"]
        why = "restore its newest intact copy with the rows of its write-ahead log"
    elif lost:
        rungs = ["layers", "rows", "copies"]
        why = "save all readable rows into a new database"
    else:
        rungs, why = ["rows"], "save all readable rows into a new database"
    yield database_repair(probes, path, rungs, why=why)
