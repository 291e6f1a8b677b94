"""Create, fill and check full-text tables (FTS5).

Filling row by row makes FTS5 merge its segments again and again. Filling in one pass, with merging
off and enough memory for whole segments, takes half as long.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import progress
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.schema import HIGH_WATER, META, PROGRESS, options

HASH = 16 * 1024 * 1024
"""Bytes of an index that are collected in memory and then written as one segment."""


@dataclass(frozen=True)
class FulltextIndex:
    """A full-text table and what its insert trigger puts into it."""

    name: str
    sql: str
    table: str = ""
    fields: str = ""
    """Its columns as the trigger lists them: `rowid, content`."""
    expression: str = ""
    """The SQL expressions for these columns, over a row called `new`."""
    columns: tuple[str, ...] = ()
    """The columns of the table whose texts, joined by spaces, are the copy that it keeps."""

    @property
    def external(self) -> bool:
        """Whether it keeps no copy of the text."""
        return "content" in options(self.sql)

    @property
    def contentless(self) -> bool:
        """Whether it neither keeps its text nor names a table that has it."""
        return options(self.sql).get("content") == ""


INSERT = pattern(
    r"AFTER\s+INSERT\s+ON\s+\"?(?P<table>\w+)\"?.*?INSERT\s+INTO\s+\"?(?P<name>\w+)\"?\s*"
    r"\((?P<fields>[^)]*)\)\s*VALUES\s*\((?P<values>.*)\)\s*;\s*END",
    re.IGNORECASE | re.DOTALL,
)
TEXTS = pattern(r"coalesce\(new\.(\w+),''\)", re.IGNORECASE)


def parse_indexes(virtual: Mapping[str, str], triggers: Mapping[str, str]) -> list[FulltextIndex]:
    """Parse full-text tables, each with the insert trigger that fills it."""
    insertions = filter(None, map(INSERT.search, triggers.values()))
    fills = {insertion["name"]: insertion for insertion in insertions}
    indexes = []
    for name, sql in virtual.items():
        insertion = fills.get(name)
        if insertion is None:
            indexes.append(FulltextIndex(name, sql))
            continue
        _, _, text = "".join(insertion["values"].split()).partition(",")
        columns = tuple(TEXTS.findall(text))
        simple = "||''||".join(f"coalesce(new.{column},'')" for column in columns)
        if "' '" not in insertion["values"] or text.lower() != simple.lower():
            columns = ()
        table, fields, values = insertion["table"], insertion["fields"], insertion["values"]
        indexes.append(FulltextIndex(name, sql, table, fields, values, columns))
    return indexes


Permit = Callable[[sqlite3.Connection, FulltextIndex], AbstractContextManager[None]]


def fill(
    database: sqlite3.Connection,
    index: FulltextIndex,
    source: str = "main",
    permit: Permit | None = None,
) -> None:
    """Create a full-text table and fill it; `permit` is a context in which it may read a view."""
    progress.report(f"filling {index.name}")
    create(database, index)
    if index.external:
        with permit(database, index) if permit else contextlib.nullcontext():
            rebuild(database, index)
    elif index.table:
        alone = not database.in_transaction
        if alone:
            database.execute("BEGIN")
        database.execute(indexing_sql(index, source))
        if alone:
            database.execute("COMMIT")
    clear_settings(database, index)


def create(database: sqlite3.Connection, index: FulltextIndex) -> None:
    """Create a full-text table with settings for filling it in one pass."""
    try:
        database.execute(index.sql)
    except sqlite3.OperationalError as error:
        raise CannotFix("the SQLite of this Python cannot create search indexes") from error
    if not can_write_shadow_tables():
        return  # the settings could not be reset afterwards
    apply_settings(database, index, [("automerge", 0), ("hashsize", HASH)])


def rebuild(database: sqlite3.Connection, index: FulltextIndex) -> None:
    """Fill a table that keeps no text from the table that has it."""
    name = quote_name(index.name)
    database.execute(f"INSERT INTO {name}({name}) VALUES('rebuild')")


def refill(database: sqlite3.Connection, index: FulltextIndex, texts: str) -> None:
    """Fill a new full-text table with the text of the old one, which is in the table `texts`."""
    names = columns(database, index)
    fields = ", ".join(map(quote_name, names))
    values = ", ".join(f"c{place}" for place in range(len(names)))
    insert = f"INSERT INTO {quote_name(index.name)}(rowid, {fields})"
    database.execute(f"{insert} SELECT id, {values} FROM {texts}")


def read_settings(database: sqlite3.Connection, table: str) -> list[tuple[str, object]]:
    """Read the settings of a full-text table from its shadow table `table`."""
    return database.execute(f"SELECT k, v FROM {table} WHERE k <> 'version'").fetchall()


def apply_settings(
    database: sqlite3.Connection, index: FulltextIndex, values: Sequence[tuple[str, object]]
) -> None:
    """Apply these settings to the new full-text table."""
    name = quote_name(index.name)
    for pair in values:
        database.execute(f"INSERT INTO {name}({name}, rank) VALUES(?, ?)", pair)


def row_count_sql(index: FulltextIndex) -> str:
    """The SQL that counts the rows of an index; if it keeps no text, its sizes are counted."""
    known = index.external and "columnsize" not in options(index.sql)
    behind = f"{index.name}_docsize" if known else index.name
    return f"SELECT count(*) FROM {quote_name(behind)}"


def columns(database: sqlite3.Connection, index: FulltextIndex) -> list[str]:
    """The columns of a full-text table, in the order in which it stores their texts."""
    rows = database.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", [index.name])
    return [row[0] for row in rows]


def indexing_sql(index: FulltextIndex, source: str, condition: str = "") -> str:
    """The SQL that indexes the rows of its table."""
    return (
        f"INSERT INTO main.{quote_name(index.name)}({index.fields}) SELECT {index.expression} "
        f"FROM {source}.{quote_name(index.table)} AS new {condition}"
    )


def clear_settings(database: sqlite3.Connection, index: FulltextIndex) -> None:
    """Remove all settings, because Hermes creates the table without any."""
    if can_write_shadow_tables():
        database.execute(f"DELETE FROM {quote_name(index.name + '_config')} WHERE k <> 'version'")


def check_integrity(
    database: sqlite3.Connection, index: FulltextIndex, *, compare_content: bool = False
) -> str:
    """Raise unless the index is sound; `compare_content` also compares it with its source."""
    name = quote_name(index.name)
    check = f"INSERT INTO {name}({name}, rank) VALUES('integrity-check', ?)"
    try:
        database.execute(check, [int(compare_content)])
    except sqlite3.DatabaseError as error:
        raise CannotFix("the new search index is damaged") from error
    return f"integrity-check of {index.name}"


def end_rebuild(database: sqlite3.Connection) -> bool:
    """Delete the two numbers with which Hermes would continue a rebuild."""
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if database.execute(there, [META]).fetchone() is None:
        return False
    keys = [HIGH_WATER, PROGRESS]
    return database.execute(f"DELETE FROM {META} WHERE key IN (?, ?)", keys).rowcount > 0


@cache
def can_write_shadow_tables() -> bool:
    """Whether shadow tables of a full-text table can be written; some SQLite builds forbid it."""
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        try:
            memory.execute("CREATE VIRTUAL TABLE probe USING fts5(a)")
            memory.execute("DELETE FROM probe_config WHERE k <> 'version'")
        except sqlite3.Error:
            return False
    return True
