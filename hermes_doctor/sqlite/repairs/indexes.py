"""Rebuild ordinary indexes from the rows of their tables."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.integrity import integrity_errors
from hermes_doctor.sqlite.repairs.work import delete_schema_rows, open_copy
from hermes_doctor.system import progress

_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND typeof(name) = 'text'"


def reindex(copy: Path) -> list[str]:
    """Rebuild every index; pages that the damage had orphaned are freed."""
    with open_copy(copy) as connection:
        names = [row[0] for row in connection.execute(_INDEXES)]
        for place, name in enumerate(names):
            progress.report("rebuilding its indexes", place / len(names))
            connection.execute(f"REINDEX {quote_name(name)}")
        progress.report("letting SQLite check every page")
        left = integrity_errors(connection)
        if left:
            connection.execute("VACUUM")  # "page is never used": the damage had orphaned it
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(names)} indexes were rebuilt from the rows."]


def compact(copy: Path) -> list[str]:
    """Compact the database with VACUUM, which removes unused pages."""
    before = copy.stat().st_size
    with open_copy(copy) as connection:
        connection.execute("VACUUM")
    saved = before - copy.stat().st_size
    return [f"{saved / 1024**2:.0f} MB of unused pages were removed."]


def remake(copy: Path) -> list[str]:
    """Delete indexes that are too damaged for REINDEX from the schema, and create them again."""
    with open_copy(copy) as connection:
        declared = connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND typeof(sql) = 'text'"
        ).fetchall()
    delete_schema_rows(copy, "type = 'index' AND sql IS NOT NULL", [])
    with open_copy(copy) as connection:
        connection.execute("VACUUM")  # frees their pages, which no index owns now
        connection.execute("REINDEX")
        for (sql,) in declared:
            connection.execute(sql)
        if integrity_errors(connection):
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(declared)} indexes were declared again and rebuilt from the rows."]
