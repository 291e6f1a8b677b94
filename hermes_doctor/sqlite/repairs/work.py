"""What all repairs of a copy need: a connection of their own, and SQLite's verdict."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.errors import name_of


@contextmanager
def at_work(copy: Path, *, lenient: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection on the copy; whatever SQLite refuses becomes a refusal of the fix.

    `lenient` opens also what has a damaged row in its schema, and lets that schema be edited.
    """
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA trusted_schema=OFF")
            if lenient:
                connection.execute("PRAGMA writable_schema=ON")
            connection.execute("PRAGMA foreign_keys=OFF")
            connection.execute("PRAGMA synchronous=OFF")  # it is flushed as a whole afterwards
            yield connection
    except (sqlite3.Error, UnicodeDecodeError) as error:  # it quotes bytes that are no text
        raise CannotFix(f"SQLite refuses it ({name_of(error)})") from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def forget(copy: Path, which: str, values: Sequence[str]) -> None:
    """Take rows out of the schema without touching the pages that they lead to."""
    with at_work(copy, lenient=True) as connection, transaction(connection):
        connection.execute(f"DELETE FROM sqlite_master WHERE {which}", list(values))
        (version,) = connection.execute("PRAGMA schema_version").fetchone()
        connection.execute(f"PRAGMA schema_version = {version + 1}")


def complaints(connection: sqlite3.Connection, most: int = 100) -> list[str]:
    """What `integrity_check` has to say; empty when all is well."""
    rows = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({most})")]
    return [] if rows == ["ok"] else rows
