"""Add the rows of one database to another that lacks them; no existing row is changed."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import count, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.deleted_log import ordinary_tables
from hermes_doctor.sqlite.examine.soundness import address, name_of
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs.add_rows import add_saved_messages
from hermes_doctor.sqlite.repairs.work import columns_of, open_copy, transaction
from hermes_doctor.sqlite.saved_rows import (
    SavedMessages,
    find_missing_messages,
    query_function,
    read_all_messages,
)

_BY_THEMSELVES = ("messages", "sessions", "schema_version")
"""Tables whose rows are added in another way, or that have one row."""


class MergeResult(NamedTuple):
    """What was done with the rows of another database."""

    said: list[str]
    left: dict[str, int]
    """By table: how many rows could not be added."""


def add_rows_of(copy: Path, source: Path) -> MergeResult:
    """Add the rows of `source` to `copy`; both are private."""
    result = MergeResult([], {})
    try:
        saved = _messages(source)
        if saved is not None:
            with open_copy(copy) as database:
                ask = query_function(OnConnection(database))
                missing = find_missing_messages(saved, ask, lambda: 0.0)
            result.left["messages"] = len(missing.left)
            if missing.addable:
                origin = "the new database"
                result.said.extend(add_saved_messages(copy, source, saved, 0.0, None, origin))
    except CouldNotLook as why:
        raise CannotFix(str(why)) from why
    with open_copy(copy) as database:
        database.execute("ATTACH ? AS other", (address(source, "&immutable=1"),))
        try:
            with transaction(database):
                _add_tables(database, result)
        except sqlite3.Error as error:
            raise CannotFix("the rows cannot be merged ({error})", error=name_of(error)) from error
        finally:
            database.execute("DETACH other")
    return MergeResult(result.said, {table: rows for table, rows in result.left.items() if rows})


def _add_tables(database: sqlite3.Connection, result: MergeResult) -> None:
    mine = {row[0] for row in database.execute("SELECT name FROM main.sqlite_master")}
    for table in ordinary_tables(database, "other"):
        if table not in mine:
            result.left[table] = _number(database, f"SELECT * FROM other.{quote_name(table)}")
            continue
        if table == "sessions":  # one without messages is not added with them
            result.left[table] = _number(
                database, "SELECT id FROM other.sessions EXCEPT SELECT id FROM main.sessions"
            )
        if table in _BY_THEMSELVES:
            continue
        added, result.left[table] = _add(database, table)
        if added:
            template = "{table}: {rows} of the new database were added."
            result.said.append(text(template, table=table, rows=count(added, "row")))


def _number(database: sqlite3.Connection, query: str) -> int:
    return int(database.execute(f"SELECT count(*) FROM ({query})").fetchone()[0])


def _messages(source: Path) -> SavedMessages | None:
    """All messages of a database; None if it has no table of messages."""
    with contextlib.closing(sqlite3.connect(address(source, "&immutable=1"), uri=True)) as database:
        named = "SELECT count(*) FROM sqlite_master WHERE name IN ('messages', 'sessions')"
        if database.execute(named).fetchone() != (2,):
            return None
        return read_all_messages(query_function(OnConnection(database)))


def _add(database: sqlite3.Connection, table: str) -> tuple[int, int]:
    """Add the rows of one table; return how many were added and how many could not be.

    A row whose key is in use gets a new number if nothing refers to the number.
    """
    name = quote_name(table)
    mine, theirs = (
        database.execute(f"PRAGMA {schema}.table_info({name})").fetchall()
        for schema in ("main", "other")
    )
    both = [row[1] for row in theirs if row[1] in {one[1] for one in mine}]
    columns = ", ".join(map(quote_name, both))
    if not both:
        return 0, _number(database, f"SELECT * FROM other.{name}")
    keys = [(row[1], row[2]) for row in mine if row[5]]
    new = f"SELECT {columns} FROM other.{name} EXCEPT SELECT {columns} FROM main.{name}"
    missing = _number(database, new)
    if len(keys) == 1 and keys[0][1].upper() == "INTEGER" and len(both) > 1:
        key = keys[0][0]
        if key in both and not _is_referred_to(database, table, key):
            columns = ", ".join(quote_name(one) for one in both if one != key)
            new = f"SELECT {columns} FROM ({new}) ORDER BY {quote_name(key)}"
    done = database.execute(f"INSERT OR IGNORE INTO main.{name} ({columns}) {new}")
    return done.rowcount, missing - done.rowcount


def _is_referred_to(database: sqlite3.Connection, table: str, key: str) -> bool:
    """Whether a column of another table has the numbers of this one: declared, or by its name.

    `run_id` and `current_run_id` are numbers of `task_runs`.
    """
    word = table.rpartition("_")[2].removesuffix("s")
    names = f"{word}_id" if key == "id" else key
    others = database.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
    for (other,) in others:
        name = quote_name(other)
        declared = database.execute(f"PRAGMA main.foreign_key_list({name})").fetchall()
        if any(str(row[2]).lower() == table.lower() for row in declared):
            return True
        columns = columns_of(database, other)
        if other != table and any(f"_{column}".endswith(f"_{names}") for column in columns):
            return True
    return False
