"""Let SQLite check a copy that is not in use."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.core.system.workers import start_worker


def name_of(error: Exception) -> str:
    """SQLite's name for an error; its message may quote content of the file."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__


def integrity_errors(connection: sqlite3.Connection, limit: int = 100) -> list[str]:
    """The messages of `integrity_check`, at most `limit`; empty if the database is sound."""
    rows = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({limit})")]
    return [] if rows == ["ok"] else rows


Question = Callable[[sqlite3.Connection], bool]
LARGE = 256 * MEGABYTE
MAPPED = 32 * MEGABYTE
"""Bytes of a file that SQLite may map; mapped pages count as memory of the process."""
OK, DAMAGED = "ok", "damaged"
OTHER_RELEASE = "malformed inverted index for FTS5"
"""Newer versions of SQLite report it for an index that an older one wrote; no row is damaged."""
_BY_TABLE = (3, 33)
"""The first SQLite version that can check a single table."""


@contextmanager
def background_check(path: Path) -> Iterator[Callable[[], str]]:
    """Check a database in the background; yield a function that waits for the verdict.

    The verdict is `ok`, `damaged`, or SQLite's name for the error that ended the check. One process
    asks all questions, because each that opens the database needs memory for the whole schema.
    """
    questions: tuple[Question, ...] = (_structure, _indexes)
    if os.stat(path).st_size > LARGE:
        questions = (_structure,)
    elif sqlite3.sqlite_version_info < _BY_TABLE:
        questions = (_everything,)
    with start_worker(path, lambda _: _asked(path, questions)) as judge:
        yield lambda: judge.receive()[1]


def address(path: Path, options: str = "") -> str:
    """Return the read-only SQLite URI of a database file."""
    return f"file:{quote(os.fsencode(path))}?mode=ro{options}"


def _asked(path: Path, questions: Sequence[Question]) -> str:
    try:
        with contextlib.closing(sqlite3.connect(address(path, "&immutable=1"), uri=True)) as here:
            here.execute(f"PRAGMA mmap_size={MAPPED}")
            return OK if all(question(here) for question in questions) else DAMAGED
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return name_of(error)


def check_structure(database: sqlite3.Connection) -> str:
    """SQLite's verdict on the structure of a database that is already open."""
    try:
        return OK if _structure(database) else DAMAGED
    except sqlite3.Error as error:
        return name_of(error)


def _everything(database: sqlite3.Connection) -> bool:
    return _sound(database, "integrity_check(3)")


def _structure(database: sqlite3.Connection) -> bool:
    return _sound(database, "quick_check(3)")


def _indexes(database: sqlite3.Connection) -> bool:
    tables = "SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'index'"
    names = [str(name).replace('"', '""') for (name,) in database.execute(tables).fetchall()]
    return all(_sound(database, f'integrity_check("{name}")') for name in names)


def _sound(database: sqlite3.Connection, check: str) -> bool:
    return [row[0] for row in database.execute(f"PRAGMA {check}")] == [OK]


def require_sound(database: Path) -> None:
    """Checkpoint the copy and let SQLite check every page; raise CannotFix if it is damaged."""
    progress.report("letting SQLite check every page")
    try:
        with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            errors = integrity_errors(connection, 5)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CannotFix(
            "SQLite cannot open the repaired copy ({error})", error=name_of(error)
        ) from error
    if errors:
        raise CannotFix("the repaired copy is still damaged")
    disk.sync_file(database)
