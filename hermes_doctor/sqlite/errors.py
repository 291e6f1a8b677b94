"""How a failure of SQLite is named without quoting the database."""

from __future__ import annotations


def name_of(error: Exception) -> str:
    """SQLite's name for a failure; its text may quote what is in the file."""
    return getattr(error, "sqlite_errorname", None) or type(error).__name__
