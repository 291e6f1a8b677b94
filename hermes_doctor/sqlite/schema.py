"""Tables and columns of a database, without opening it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import pages, records

MOST_PAGES = 2000
"""A schema fills a few pages; Hermes' largest fills six."""


@dataclass(frozen=True)
class Schema:
    """The tables with their column names, and the names of the indexes."""

    tables: Mapping[str, frozenset[str]]
    indexes: frozenset[str]


def read(path: Path) -> Schema:
    """The schema of the database at `path`."""
    tables: dict[str, frozenset[str]] = {}
    indexes: set[str] = set()
    with pages.opened(path) as book:
        for row in records.rows(book, 1, most=MOST_PAGES):
            if len(row) < 5 or not isinstance(row[1], str):
                raise CouldNotLook(f"{path.name}: a row of its schema is damaged")
            kind, name, sql = row[0], row[1], row[4]
            if kind == "index":
                indexes.add(name)
            elif kind == "table" and isinstance(sql, str) and not name.startswith("sqlite_"):
                columns = _columns(name, sql)
                if columns:
                    tables[name] = columns
    return Schema(tables, frozenset(indexes))


def _columns(name: str, sql: str) -> frozenset[str]:
    """The columns that a CREATE TABLE declares, by letting SQLite read it in memory."""
    if not sql.upper().startswith("CREATE TABLE"):
        return frozenset()  # a virtual table
    memory = sqlite3.connect(":memory:")
    try:
        memory.set_authorizer(declares_only)
        memory.execute(sql)
        memory.set_authorizer(None)
        found = memory.execute("SELECT name FROM pragma_table_xinfo(?)", (name,)).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
        raise CouldNotLook("the declaration of a table cannot be read") from error
    finally:
        memory.close()
    return frozenset(row[0] for row in found)


def declares_only(action: int, *_: object) -> int:
    """A declaration may declare; CREATE TABLE … AS SELECT would be run, for as long as it likes."""
    return sqlite3.SQLITE_DENY if action in (sqlite3.SQLITE_SELECT, 33) else sqlite3.SQLITE_OK
