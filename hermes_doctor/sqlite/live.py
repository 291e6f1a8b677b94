"""A copy of a database that some process is writing to, without disturbing the writer."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from hermes_doctor import durable, owner
from hermes_doctor.files import snapshot
from hermes_doctor.model import CannotFix, Trouble

LONGEST = 3600.0
"""Seconds for which a reader may hold a database still, should we hang ourselves."""


def copy(source: Path, target: Path, progress: Callable[[int], None] | None = None) -> str:
    """Copy a database in use into a new file; SQLite's verdict on the copy.

    A second process holds a read transaction meanwhile. Under it no checkpoint can overwrite
    what is being read, and the log is not begun anew, so that the file and then the log, copied
    as they are, make a pair that SQLite recovers. It must be a second process: closing the
    file that we read would drop the locks that our own process holds on it. A reader never
    blocks a writer of a database in WAL mode.
    """
    log = source.with_name(source.name + "-wal")
    try:
        with _held_still(source):
            for path in (source, log):
                if path == source or snapshot(path).kind == "file":
                    copied = target.with_name(target.name + path.name[len(source.name) :])
                    with durable.fresh(copied) as fd:
                        durable.copy(path, fd, progress)
                    durable.give(copied, owner.of_folder(copied))
        return owner.with_rights_of_owner(target, lambda: _merged(target))
    except (CannotFix, sqlite3.Error) as error:
        raise Trouble(
            f"{source.name} is in use and cannot be copied through SQLite ({_name(error)}). "
            f"Stop the gateway and try again."
        ) from None
    finally:
        for suffix in ("-wal", "-shm", "-journal"):
            durable.remove(target.with_name(target.name + suffix))


@contextmanager
def _held_still(source: Path) -> Iterator[None]:
    """A child that keeps a read transaction open on the database."""
    ready, saying = os.pipe()

    def hold() -> str:
        address = f"file:{quote(str(source))}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=5)) as reader:
            reader.isolation_level = None
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            os.write(saying, b"1")
            time.sleep(LONGEST)
        return ""

    try:
        with owner.child(source, lambda: _named(hold)) as stream:
            os.close(saying)
            saying = -1
            if not os.read(ready, 1):
                owner.answer(stream)
            yield
    finally:
        os.close(ready)
        if saying >= 0:
            os.close(saying)


def _named(act: Callable[[], str]) -> str:
    try:
        return act()
    except sqlite3.Error as error:
        raise CannotFix(_name(error)) from None


def _merged(target: Path) -> str:
    """Bring the log of a copy into it, so that it is one file; SQLite's verdict on that."""
    try:
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    except sqlite3.Error as error:
        return _name(error)
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


def _name(error: Exception) -> str:
    """SQLite's name for an error; its text may quote names out of the file."""
    if isinstance(error, CannotFix):
        return str(error)
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
