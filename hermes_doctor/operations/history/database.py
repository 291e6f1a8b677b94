"""Opens the file of the history for writing: creates it, migrates it, sets a damaged one aside.

This is the only module that imports sqlite-utils. The journal is a file that exists only during a
transaction (SQLite's mode DELETE, not WAL): so a reader leaves no file behind and needs no right to
write to the folder. Each transaction is short; another writer waits for it for a few seconds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.operations.history.layout import (
    APPLICATION,
    COLUMNS,
    VERSION,
    ImpossibleValue,
    readable,
    refuse_newer,
)

if TYPE_CHECKING:
    from sqlite_utils import Database

WAIT = 5.0
"""Seconds that a writer waits for another one."""
KEPT = 3
"""Damaged files to keep."""
_SIDECARS = ("-journal", "-wal", "-shm")
_UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, AttributeError, RecursionError)
"""What sqlite-utils raises for damaged names of tables and columns."""
_DAMAGE = frozenset(
    {
        sqlite3.SQLITE_ERROR,  # a table or column is missing
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_FORMAT,
    }
)


_ODD = "{path} is not a regular file, so the history is off."


class Damaged(Exception):
    """Says why the file is not a usable history."""

    inode = 0
    """Which file that was: another process may replace it."""


@contextlib.contextmanager
def transaction(path: Path, *, verify: bool = False) -> Iterator[Database]:
    """One transaction on the history, which is created or migrated if necessary.

    Raises Damaged if the file is no history, and Trouble if it cannot be written for another
    reason. `verify` reads the whole file first.
    """
    with _opened(path) as db:
        if verify:
            answers = [str(row[0]) for row in db.execute("PRAGMA quick_check(1)").fetchall()]
            if answers != ["ok"]:
                raise Damaged(f"it is torn: {answers[0] if answers else 'no answer'}")
        db.execute("BEGIN IMMEDIATE")
        try:
            _prepare(db)
            yield db
        except BaseException:
            db.rollback()
            raise
        db.commit()


def vacuum(path: Path) -> None:
    """Return free pages to the disk; without room for that, the file stays as it is."""
    with contextlib.suppress(Trouble), _opened(path) as db:
        db.vacuum()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Database]:
    """The open file; errors of SQLite and impossible values become Damaged or Trouble.

    Any other error is a bug, and no reason to set a history aside.
    """
    from sqlite_utils import Database

    disk.make_folder(path.parent)
    with as_owner_of(path) as here:
        _create(here)
        try:
            with contextlib.closing(sqlite3.connect(here, timeout=WAIT)) as connection:
                connection.text_factory = readable
                db = Database(connection, execute_plugins=False)
                if db.journal_mode != "delete":
                    db.disable_wal()
                yield db
        except (sqlite3.Error, Damaged, ImpossibleValue, UnicodeDecodeError) as error:
            explained = _explained(error, path)
            if isinstance(explained, Damaged):
                explained.inode = os.lstat(here).st_ino
            raise explained from None


def _create(path: Path) -> None:
    """Create the file, readable by its owner only; refuse anything else in its place."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        fd = os.open(path, flags, disk.FILE_MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise Trouble(_ODD, path=path) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise Trouble(_ODD, path=path)
    finally:
        os.close(fd)  # before SQLite opens it: closing a file drops the locks of this process


def _explained(error: Exception, path: Path) -> Exception:
    if isinstance(error, Damaged):
        return error
    if not isinstance(error, sqlite3.Error):
        return Damaged(f"it contains impossible values ({error})")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _DAMAGE:
        return Damaged(str(error))
    return Trouble("Could not write the history ({error}): {path}", error=error, path=path)


def _prepare(db: Database) -> None:
    """Check whose file it is, bring its tables up to date, and see that they are complete."""
    try:
        application = _pragma(db, "application_id")
        if _pragma(db, "schema_version") and application != APPLICATION:
            raise Damaged("it belongs to another program")
        known = _pragma(db, "user_version")
        refuse_newer(known)
        if known != VERSION:
            from sqlite_utils.migrations import Migrations

            steps = Migrations("hermes-doctor")
            steps(name="1")(_first_tables)
            steps(name="2")(_add_options_and_due)
            steps.apply(db)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {VERSION}")
        for table, columns in COLUMNS.items():
            db.execute(f"SELECT {', '.join(f'[{name}]' for name in columns)} FROM {table} LIMIT 0")
            db.execute(
                f"SELECT * FROM {table} LIMIT 0"
            )  # raises if the name of a column is no text
    except _UNREADABLE as error:
        raise Damaged(f"its tables cannot be read ({type(error).__name__})") from None


def _pragma(db: Database, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


def _first_tables(db: Database) -> None:
    """Times are text in UTC that sorts by time, such as 2026-11-17T04:13:05Z."""
    db.table("homes").create(
        {
            **{"id": int, "path": str, "identity": str, "boot": str},
            **{"first_seen": str, "last_seen": str, "condition": str, "counted_until": str},
            **{"spacing": int, "hermes": str, "doctor": str, "gateway": int},
            **{"gateway_started": str, "last_run": str, "steady_since": str, "pruned": str},
        },
        pk="id",
        not_null={"path", "identity", "first_seen", "last_seen"},
    )
    db.table("episodes").create(
        {
            **{"id": int, "home": int, "code": str, "subject": str, "severity": str, "title": str},
            **{"check": str, "first_seen": str, "last_seen": str, "ended": str, "how": str},
            **{"repair": str, "returns": int},
        },
        pk="id",
        not_null={"home", "code", "subject", "severity", "first_seen", "last_seen"},
        defaults={"returns": 0},
    ).create_index(["home", "ended"]).create_index(["home", "code", "subject", "ended"])
    db.table("hours").create(
        {"home": int, "hour": str, "working": int, "limited": int, "silent": int},
        pk=("home", "hour"),
    )
    db.table("marks").create(
        {
            **{"id": int, "home": int, "at": str, "kind": str, "what": str, "code": str},
            **{"subject": str, "run": str, "times": int, "until": str},
        },
        pk="id",
        not_null={"home", "at", "kind", "what"},
        defaults={"times": 1},
    ).create_index(["home", "kind", "at"])


def _add_options_and_due(db: Database) -> None:
    """Which options found a problem, and in how many seconds the next record is due."""
    db.table("episodes").add_column("options", str)
    db.table("homes").add_column("due", int)


def set_aside(path: Path, inode: int) -> Path | None:
    """Rename a damaged history, with its journal, and keep only a few of them.

    Return its new name; None if another process has replaced that file already.
    """
    name = f"{path.name}.damaged-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    aside = path.with_name(name)
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"{name}-{number}")
    try:
        if os.lstat(path).st_ino != inode:
            return None
        for suffix in _SIDECARS:  # a journal that stays would be played back into the new file
            with contextlib.suppress(FileNotFoundError):
                disk.rename(
                    path.with_name(path.name + suffix), aside.with_name(aside.name + suffix)
                )
        disk.rename(path, aside)
    except FileNotFoundError:
        return None
    disk.sync_folder(path.parent)
    start = f"{path.name}.damaged-"
    with as_owner_of(path) as here:
        names = sorted(name for name in os.listdir(here.parent) if name.startswith(start))
    files = [name for name in names if not name.endswith(_SIDECARS)]
    for name in files[:-KEPT]:
        for suffix in ("", *_SIDECARS):
            disk.remove(path.with_name(name + suffix))
    return aside
