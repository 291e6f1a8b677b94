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
from hermes_doctor.values import NamedTuple

LONGEST = 3600.0
"""Seconds for which a reader may hold a database still, should we hang ourselves."""
READY = 30.0
"""Seconds within which it must have the database."""
TRIES = 20
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")

Progress = Callable[[int], None]


class Copied(NamedTuple):
    """What is known of a copy."""

    verdict: str
    """SQLite's."""
    sha256: str
    """Of what is on the disk."""


def copy(source: Path, target: Path, progress: Progress | None = None) -> Copied:
    """Copy a database in use into a new file.

    A second process holds a read transaction meanwhile. Under it no checkpoint can overwrite
    the file; so the file and then its log, copied as they are, make a pair that SQLite recovers.
    Only when the whole log was in the file already may a writer begin it anew under us, and then
    the log is copied again. It must be a second process: closing the file that we read would
    drop the locks that our own process holds on it. A reader never blocks a writer of a database
    in WAL mode.
    """
    try:
        with _held_still(source) as reader:
            with durable.fresh(target, lasting=False) as fd:
                durable.transfer(source, fd, progress)
            _copy_log(source, target, progress)
            if not reader.alive:
                raise CannotFix("the reader that held it still is gone")
        return _finished(target)
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
        with durable.fresh(copied, lasting=False) as fd:
            durable.transfer(log, fd, progress)
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


def _finished(target: Path) -> Copied:
    """Make the copy one file, and read it back."""
    places: list[Path] = []

    def act(place: Path) -> str:
        places.append(place)
        return _read_back(place)

    verdict, sha256 = with_rights_of(target, act).split()
    elsewhere = places and places[0] != target
    if elsewhere and durable.digest(target) != sha256:
        raise CannotFix("the copy is not what was written")
    return Copied(verdict, sha256)


def _read_back(place: Path) -> str:
    """With its log brought into it: SQLite's verdict on it, and the hash of what the disk has.

    Side by side, and SQLite in a process of its own: it maps the file, and a disk that fails
    kills whoever reads a map.
    """
    damage = _merged(place)
    with child(place, lambda _: damage or _verdict(place)) as judge:
        durable.sync_file(place)
        sha256 = durable.digest(place)
        return f"{judge.hear()[1]} {sha256}"


def _merged(place: Path) -> str:
    """Bring the log of a copy into it; what kind of damage forbids it, if any does."""
    try:
        with contextlib.closing(sqlite3.connect(place, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")  # it is synced as a whole
            connection.execute("PRAGMA journal_mode=DELETE").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not _name(error).startswith(_DAMAGE):
            raise CannotFix(_name(error)) from None  # a full disk says nothing of the source
        return _name(error)
    return ""


def _verdict(place: Path) -> str:
    """What SQLite says of a database at rest that nobody else uses."""
    try:
        with contextlib.closing(
            sqlite3.connect(address(place, "&immutable=1"), uri=True)
        ) as connection:
            connection.execute(f"PRAGMA mmap_size={1 << 40}")
            rows = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return _name(error)
    return "ok" if rows == ["ok"] else "damaged"


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
