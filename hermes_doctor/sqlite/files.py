"""Find the files of a database, and let SQLite check a repaired copy."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hermes_doctor.home import SIDECARS
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.sqlite.integrity import integrity_errors
from hermes_doctor.system import disk, progress


def resolve_symlink(path: Path) -> Path:
    """Resolve a symlink: repairs keep the link and change the file that it points to."""
    try:
        return path.resolve(strict=True) if path.is_symlink() else path
    except (OSError, RuntimeError):
        raise CannotFix(
            text(
                "{path} is a symlink to a missing file. Correct the symlink first.", path=path.name
            )
        ) from None


def sidecars(database: Path) -> list[Path]:
    """The paths of the files that SQLite keeps next to a database, the write-ahead log first."""
    return [database.with_name(database.name + suffix) for suffix in SIDECARS]


def require_sound(database: Path) -> None:
    """Checkpoint the copy and let SQLite check every page; raise CannotFix if it is damaged."""
    import sqlite3

    progress.report("letting SQLite check every page")
    try:
        with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            errors = integrity_errors(connection, 5)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CannotFix(
            text("SQLite cannot open the repaired copy ({error})", error=name_of(error))
        ) from error
    if errors:
        raise CannotFix("the repaired copy is still damaged")
    disk.sync_file(database)
