"""Repair, restore or replace a damaged database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Fix, Probes, Safety, fix, snapshot, text
from hermes_doctor.api.tools import count

if TYPE_CHECKING:
    from hermes_doctor.api import Step


def repair_fix(id: str, codes: Sequence[str], title: str, method: str, why: str) -> Fix:
    """Declare a fix that repairs a copy of the database by one method, else salvages its rows."""

    def plan(probes: Probes, finding: Finding) -> Iterator[Step]:
        from hermes_doctor.api.repairs import database_repair

        yield database_repair(probes, probes.home / finding.subject, [method], why=why)

    return Fix(id, tuple(codes), Safety.SAFE, title, plan, then="salvage-rows")


rebuild_fts = repair_fix(
    "rebuild-fts",
    ["DB-FTS-CORRUPT"],
    "Rebuild the search index of the database.",
    method="full text",
    why="rebuild its search index from its rows",
)
rebuild_indexes = repair_fix(
    "rebuild-indexes",
    ["DB-INDEX"],
    "Rebuild the indexes of the database.",
    method="indexes",
    why="rebuild its indexes from its rows",
)
rewrite_header = repair_fix(
    "rewrite-header",
    ["DB-NOTADB", "DB-MALFORMED", "KANBAN-CORRUPT", "RESPSTORE"],
    "Rebuild the header of the database.",
    method="header",
    why="rebuild its header",
)


@fix(id="write-magic", codes=["DB-NOTADB"], safety=Safety.SAFE, then="salvage-rows")
def write_magic(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the first 16 bytes of the database."""
    from hermes_doctor.api.repairs import database_repair

    path = probes.home / finding.subject
    if not probes.databases.header(path).magic:
        why = "restore its first 16 bytes, or its whole header if needed"
        yield database_repair(probes, path, ["magic", "header"], why=why)


@fix(id="roll-back", codes=["DB-JOURNAL"], safety=Safety.SAFE, then="salvage-rows")
def roll_back(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Roll back the interrupted transaction."""
    from hermes_doctor.api.repairs import roll_back_transaction

    yield roll_back_transaction(probes.home / finding.subject)


@fix(
    id="restore-database",
    codes=["DB-EMPTY", "DB-GONE", "DB-NOTADB"],
    safety=Safety.CONFIRM,
    then="salvage-rows",
)
def restore_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the newest intact copy of the database."""
    from hermes_doctor.api import ReplaceDatabase
    from hermes_doctor.api.repairs import NO_COPY, restore_from_copy

    path = probes.home / finding.subject
    copies = probes.databases.all_copies(path)
    if not copies:
        raise CannotFix(NO_COPY)
    own = [database_copy for database_copy in copies if not database_copy.doubtful]
    newest = (own or copies)[0]
    name = probes.home.name_of(newest.path) + (newest.member and f":{newest.member}")
    if not own:
        why = text("restore {copy}, which may be of another home", copy=name)
    elif len(own) < len(copies):
        why = text(
            "restore {copy}, or an older copy if it is damaged; {left} not used, perhaps of "
            "another home",
            copy=name,
            left=count(len(copies) - len(own), "copy", "copies"),
        )
    else:
        why = text("restore {copy}, or an older copy if it is damaged", copy=name)
    yield ReplaceDatabase(
        path,
        lambda copy: restore_from_copy(copy, copies),
        why=why,
        expect=snapshot(path),
    )


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
    from hermes_doctor.api.repairs import database_repair

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


@fix(
    id="start-empty",
    codes=[
        "DB-NOTADB",
        "DB-EMPTY",
        "DB-GONE",
        "DB-TRUNCATED",
        "DB-MALFORMED",
        "KANBAN-CORRUPT",
    ],
    safety=Safety.CONFIRM,
    gives_up_data=True,
)
def start_empty(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start with an empty database; keep the damaged file in the backup."""
    from hermes_doctor.api import repairs

    yield from repairs.start_empty(probes, probes.home / finding.subject)


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
