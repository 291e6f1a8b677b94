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

from hermes_doctor import durable
from hermes_doctor.child import Child, Say, child, with_rights_of
from hermes_doctor.files import read_head, snapshot
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble

LONGEST = 3600.0
"""Seconds for which a reader may hold a database still, should we hang ourselves."""
READY = 30.0
"""Seconds within which it must have the database."""
TRIES = 20
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

Progress = Callable[[int], None]


def copy(source: Path, target: Path, progress: Progress | None = None) -> str:
    """Copy a database in use into a new file; SQLite's verdict on the copy.

    A second process holds a read transaction meanwhile. Under it no checkpoint can overwrite
    the file; so the file and then its log, copied as they are, make a pair that SQLite recovers.
    Only when the whole log was in the file already may a writer begin it anew under us, and then
    the log is copied again. It must be a second process: closing the file that we read would
    drop the locks that our own process holds on it. A reader never blocks a writer of a database
    in WAL mode.
    """
    try:
        with _held_still(source) as reader:
            with durable.fresh(target) as fd:
                durable.copy(source, fd, progress)
            _copy_log(source, target, progress)
            if not reader.alive:
                raise CannotFix("the reader that held it still is gone")
        return with_rights_of(target, _merged)
    except (CannotFix, CouldNotLook) as why:
        durable.remove(target)
        raise Trouble(
            f"{source.name} is in use and cannot be copied ({why}). Stop the gateway and try again."
        ) from None
    finally:
        for suffix in ("-wal", "-shm", "-journal"):
            durable.remove(target.with_name(target.name + suffix))


def _copy_log(source: Path, target: Path, progress: Progress | None) -> None:
    """The log of one generation: its head tells, and only grows behind it."""
    log, copied = (path.with_name(path.name + "-wal") for path in (source, target))
    for _ in range(TRIES):
        if snapshot(log).kind != "file":
            return
        with durable.fresh(copied) as fd:
            durable.copy(log, fd, progress)
        if read_head(copied, 32)[0] == read_head(log, 32)[0]:
            return
        durable.remove(copied)
    raise CannotFix("its log is begun anew all the time")


@contextmanager
def _held_still(source: Path) -> Iterator[Child]:
    """A child that keeps a read transaction open on the database."""

    def hold(say: Say) -> str:
        with _named(), contextlib.closing(sqlite3.connect(address(source), uri=True)) as reader:
            reader.isolation_level = None
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
            say("it is held")
            time.sleep(LONGEST)
        return ""

    with child(source, hold) as reader:
        reader.hear(READY)
        yield reader


def address(path: Path, more: str = "") -> str:
    """The address of a database for reading only, whatever bytes its name is made of."""
    return f"file:{quote(os.fsencode(path))}?mode=ro{more}"


@contextmanager
def _named() -> Iterator[None]:
    """SQLite's failures by name: their texts may quote what is in the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CannotFix(_name(error)) from None


def _merged(target: Path) -> str:
    """Bring the log of a copy into it, so that it is one file; SQLite's verdict on that."""
    try:
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not _name(error).startswith(_DAMAGE):
            raise CannotFix(_name(error)) from None  # a full disk says nothing of the source
        return _name(error)
    durable.sync_file(target)
    return verdict(target)


def verdict(path: Path) -> str:
    """What SQLite says of a database at rest that nobody else uses."""
    try:
        with contextlib.closing(
            sqlite3.connect(address(path, "&immutable=1"), uri=True)
        ) as connection:
            rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return _name(error)
    return "ok" if rows == ["ok"] else "damaged"


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
