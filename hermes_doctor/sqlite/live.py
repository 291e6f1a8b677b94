"""A copy of a database that some process is writing to, without disturbing the writer."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from hermes_doctor import durable
from hermes_doctor.model import Trouble

PAGES = 2000
"""Pages copied between two reports of progress."""


def copy(source: Path, target: Path, progress: Callable[[int], None] | None = None) -> str:
    """Copy through SQLite's backup interface under one read transaction; SQLite's verdict on it.

    The read transaction is what makes it end: without it every commit of the writer starts the
    copy over. A reader never blocks a writer of a database in WAL mode.
    """
    with durable.fresh(target):
        pass
    seen = 0

    def report(_: int, remaining: int, total: int) -> None:
        nonlocal seen
        done = (total - remaining) * page
        if progress:
            progress(done - seen)
        seen = done

    try:
        reader = sqlite3.connect(f"file:{quote(str(source))}?mode=ro", uri=True, timeout=5)
        with contextlib.closing(reader):
            reader.isolation_level = None
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            page = reader.execute("PRAGMA page_size").fetchone()[0]
            with contextlib.closing(sqlite3.connect(target)) as writer:
                reader.backup(writer, pages=PAGES, progress=report)
                writer.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise Trouble(
            f"{source.name} is in use and cannot be copied through SQLite ({_name(error)}). "
            f"Stop the gateway and try again."
        ) from None
    durable.sync_file(target)
    return verdict(target)


def verdict(path: Path) -> str:
    """What SQLite says of a database at rest that nobody else uses."""
    address = f"file:{quote(str(path))}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    except sqlite3.Error as error:
        return _name(error)
    return "ok" if rows == ["ok"] else "damaged"


def _name(error: sqlite3.Error) -> str:
    """SQLite's name for an error; its text may quote names out of the file."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
