"""Give a kanban database the columns that it lacks."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hermes_doctor.api import (
    CannotFix,
    Finding,
    Probes,
    ReplaceDatabase,
    Safety,
    Step,
    columns_of,
    fix,
    load_knowledge,
)


@fix(id="add-columns", codes=["KANBAN-SCHEMA"], safety=Safety.SAFE)
def add_columns(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the missing columns, with their declared types and defaults, on a copy."""
    missing: tuple[tuple[str, str], ...] = finding.data["missing"]
    version: tuple[int, ...] = finding.data["version"]
    path = probes.home / finding.subject
    names = ", ".join(f"{table}.{column}" for table, column in missing)
    yield ReplaceDatabase(
        path,
        lambda copy: _add(copy, missing, version),
        why=f"add {names}",
        expect=probes.header(path).snapshot,
    )


def _add(copy: Path, missing: tuple[tuple[str, str], ...], version: tuple[int, ...]) -> None:
    knowledge = load_knowledge("schemas/kanban")
    try:
        with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
            for table, column in missing:
                facts = columns_of(knowledge["tables"][table], version)[column]
                connection.execute(f'ALTER TABLE "{table}" ADD COLUMN {_declare(column, facts)}')
            present = _columns(connection)
            for index in knowledge["indexes"].values():
                if index["table"] in {table for table, _ in missing}:
                    _index(connection, index["sql"], present[index["table"]])
    except sqlite3.Error as error:
        raise CannotFix(f"the columns cannot be added ({error})") from error


def _declare(column: str, facts: dict[str, Any]) -> str:
    """The declaration; NOT NULL without a default needs one for the rows that are there."""
    default = facts["default"]
    if default is None and facts["notnull"]:
        default = "''" if facts["type"] == "TEXT" else "0"
    return (
        f'"{column}" {facts["type"]}'
        + (" NOT NULL" if facts["notnull"] else "")
        + (f" DEFAULT {default}" if default is not None else "")
    )


def _columns(connection: sqlite3.Connection) -> dict[str, set[str]]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        table: {
            row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        }
        for (table,) in tables
    }


def _index(connection: sqlite3.Connection, sql: str, columns: set[str]) -> None:
    """An index that went with the column, unless it needs a column of a newer release."""
    needed = sql[sql.index("(") + 1 : sql.index(")")].replace(",", " ").split()
    if columns.issuperset(name.strip('"') for name in needed if name not in ("DESC", "ASC")):
        statement = sql.replace("CREATE INDEX ", "CREATE INDEX IF NOT EXISTS ", 1)
        connection.execute(
            statement.replace("CREATE UNIQUE INDEX ", "CREATE UNIQUE INDEX IF NOT EXISTS ", 1)
        )
