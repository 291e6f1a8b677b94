"""Name an SQLite error without quoting content of the database."""

from __future__ import annotations


def name_of(error: Exception) -> str:
    """SQLite's name for an error; its message may quote content of the file."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
