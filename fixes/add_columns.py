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
    """Add the columns, and the indexes that went with them."""
    from sqlite_utils import Database

    knowledge = load_knowledge("schemas/kanban")
    try:
        with contextlib.closing(sqlite3.connect(copy)) as connection, connection:
            for table, column in missing:
                facts = columns_of(knowledge["tables"][table], version)[column]
                connection.execute(f'ALTER TABLE "{table}" ADD COLUMN {_declare(column, facts)}')
            database = Database(connection, execute_plugins=False)
            for name, index in knowledge["indexes"].items():
                indexed = database.table(index["table"])
                went = any((index["table"], column) in missing for column in index["columns"])
                if went and indexed.columns_dict.keys() >= set(index["columns"]):
                    indexed.create_index(
                        index["columns"], name, unique=index["unique"], if_not_exists=True
                    )
    except sqlite3.Error as error:
        raise CannotFix(f"the columns cannot be added ({error.sqlite_errorname})") from error


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
