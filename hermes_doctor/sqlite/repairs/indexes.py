"""Rebuild ordinary indexes from the rows of their tables."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.column_rules import quoted
from hermes_doctor.sqlite.repairs.work import at_work, complaints, forget
from hermes_doctor.system import progress

_INDEXES = "SELECT name FROM sqlite_master WHERE type = 'index' AND typeof(name) = 'text'"


def reindex(copy: Path) -> list[str]:
    """Rebuild every index; pages that the damage had orphaned are freed."""
    with at_work(copy) as connection:
        names = [row[0] for row in connection.execute(_INDEXES)]
        for place, name in enumerate(names):
            progress.tell("rebuilding its indexes", place / len(names))
            connection.execute(f"REINDEX {quoted(name)}")
        progress.tell("letting SQLite check every page")
        left = complaints(connection)
        if left:
            connection.execute("VACUUM")  # "page is never used": the damage had orphaned it
            left = complaints(connection)
        if left:
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(names)} indexes were rebuilt from the rows."]


def compact(copy: Path) -> list[str]:
    """Compact the database with VACUUM, which removes unused pages."""
    before = copy.stat().st_size
    with at_work(copy) as connection:
        connection.execute("VACUUM")
    saved = before - copy.stat().st_size
    return [f"{saved / 1024**2:.0f} MB of unused pages were given back."]


def remake(copy: Path) -> list[str]:
    """Delete indexes that are too damaged for REINDEX from the schema, and create them again."""
    with at_work(copy) as connection:
        declared = connection.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND typeof(sql) = 'text'"
        ).fetchall()
    forget(copy, "type = 'index' AND sql IS NOT NULL", [])
    with at_work(copy) as connection:
        connection.execute("VACUUM")  # frees their pages, which no index owns now
        connection.execute("REINDEX")
        for (sql,) in declared:
            connection.execute(sql)
        if complaints(connection):
            raise CannotFix("more than its indexes is damaged")
    return [f"{len(declared)} indexes were declared again and rebuilt from the rows."]
