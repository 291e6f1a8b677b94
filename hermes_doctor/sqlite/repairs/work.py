"""Helpers for repairs of a copy: connection, transaction, schema edits, integrity check."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.errors import name_of


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
        raise CannotFix(text("SQLite refuses it ({error})", error=name_of(error))) from error


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


def delete_schema_rows(copy: Path, which: str, values: Sequence[str]) -> None:
    """Delete rows of the schema without changing the pages that they point to."""
    with open_copy(copy, lenient=True) as connection, transaction(connection):
        connection.execute(f"DELETE FROM sqlite_master WHERE {which}", list(values))
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")
