"""Try repair methods one after the other, each on a new copy, and what all methods need."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine.soundness import name_of, require_sound
from hermes_doctor.sqlite.files import sidecars


@contextmanager
def open_copy(copy: Path, *, lenient: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a connection to the copy; an SQLite error is raised as CannotFix.

    `lenient` also opens a database with a damaged schema row, and allows edits of the schema.
    """
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            if lenient:
                connection.execute("PRAGMA writable_schema=ON")
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("PRAGMA synchronous=OFF")  # the whole file is flushed afterwards
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite's message quotes invalid UTF-8
        raise CannotFix("SQLite refuses it ({error})", error=name_of(error)) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run a block in a transaction; roll it back on any exception."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def without_triggers(connection: sqlite3.Connection, tables: Sequence[str]) -> Iterator[None]:
    """Remove the triggers of these tables, which fill the search index; create them again."""
    marks = ", ".join("?" for _ in tables)
    triggers = connection.execute(
        "SELECT name, sql FROM main.sqlite_master "
        f"WHERE type = 'trigger' AND tbl_name IN ({marks})",
        list(tables),
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER main.{quote_name(name)}")
    yield
    for _, sql in triggers:
        connection.execute(sql)


def columns_of(connection: sqlite3.Connection, table: str, schema: str = "main") -> list[str]:
    """The columns of a table; none if there is no such table."""
    rows = connection.execute(f"PRAGMA {schema}.table_info({quote_name(table)})")
    return [str(row[1]) for row in rows]


def remove_database(path: Path) -> None:
    """Remove a private database with the files next to it."""
    for part in (path, *sidecars(path)):
        disk.remove(part)


def put_in_place(new: Path, copy: Path) -> None:
    """Rename a new database to `copy`, without the files next to the old one."""
    for old in sidecars(copy):
        disk.remove(old)
    disk.rename(new, copy)


def delete_schema_rows(copy: Path, which: str, values: Sequence[str]) -> None:
    """Delete rows of the schema without changing the pages that they point to."""
    with open_copy(copy, lenient=True) as connection, transaction(connection):
        connection.execute(f"DELETE FROM sqlite_master WHERE {which}", list(values))
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")


RepairMethod = tuple[str, Callable[[Path], Sequence[str] | None]]
"""The name of a repair method, and the function that repairs a copy."""


def try_methods(copy: Path, rungs: Sequence[RepairMethod]) -> list[str]:
    """Replace `copy` by the result of the first method that is sound; return what was done."""
    failures = []
    for name, repair in rungs:
        attempt = copy.with_name(copy.name + ".attempt")
        try:
            progress.report(name)
            _duplicate(copy, attempt)
            sentences = list(repair(attempt) or ())
            require_sound(attempt)
            put_in_place(attempt, copy)
        except CannotFix as why:
            failures.append(f"{name}: {why}")
            continue
        finally:
            remove_database(attempt)
        tried = [f"Not enough: {failure}." for failure in failures]
        return [*tried, *sentences]
    raise CannotFix("No repair worked ({failures})", failures="; ".join(failures))


def _duplicate(source: Path, target: Path) -> None:
    """Copy the damaged database again, with its write-ahead log and journal."""
    for suffix in ("", "-wal", "-journal"):
        here = source.with_name(source.name + suffix)
        if snapshot(here).kind == "file":
            with disk.new_file(target.with_name(target.name + suffix)) as fd:
                disk.copy(here, fd)
