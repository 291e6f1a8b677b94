"""Ask SQLite itself whether an open database is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


def integrity_errors(connection: sqlite3.Connection, limit: int = 100) -> list[str]:
    """The messages of `integrity_check`, at most `limit`; empty if the database is sound."""
    rows = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({limit})")]
    return [] if rows == ["ok"] else rows
