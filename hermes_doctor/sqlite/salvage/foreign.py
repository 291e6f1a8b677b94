"""Carry over the operator's own views, triggers and virtual tables to the new database.

The release does not know them. Their tables are read like any other, and their declarations are
repeated. Those that cannot be repeated are reported as lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite import fulltext
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.fulltext import FulltextIndex
from hermes_doctor.sqlite.salvage.account import TableResult
from hermes_doctor.sqlite.salvage.layouts import (
    SHADOW_SUFFIXES,
    SalvagedCatalog,
    shadow_tables,
    unknown_virtual_tables,
)

if TYPE_CHECKING:
    from hermes_doctor.sqlite.salvage.target import NewDatabase


def create_views(target: NewDatabase, catalog: SalvagedCatalog) -> None:
    """Create the views again."""
    for entry in catalog.entries:
        if entry.kind != "view" or entry.name in target.blueprint.views:
            continue
        if not _declared(target, entry.sql, "CREATE VIEW"):
            target.lost.append(f"the view {shown([entry.name])}")


def create_triggers(target: NewDatabase, catalog: SalvagedCatalog) -> None:
    """Create the triggers again, except those that would make every write fail."""
    for entry in catalog.entries:
        if entry.kind != "trigger" or entry.name in target.blueprint.triggers:
            continue
        works = _declared(target, entry.sql, "CREATE TRIGGER")
        if works and not _works(target, entry.table):
            target.database.execute(f"DROP TRIGGER {quote_name(entry.name)}")
            works = False
        if not works:
            target.lost.append(f"the trigger {shown([entry.name])}")


def _declared(target: NewDatabase, sql: str, what: str) -> bool:
    return sql.upper().startswith(what) and target.declare(sql)


def _works(target: NewDatabase, table: str) -> bool:
    """Whether SQLite can still compile writes to a table."""
    layout = target.layouts.get(table)
    columns = [c.name for c in layout.columns if c.name not in layout.computed] if layout else []
    name = quote_name(table)
    ways = [f"DELETE FROM {name}", f"INSERT INTO {name} DEFAULT VALUES"]
    if columns:
        same = ", ".join(f"{quote_name(column)} = {quote_name(column)}" for column in columns)
        ways.append(f"UPDATE {name} SET {same}")
    try:
        for way in ways if layout else ():
            target.database.execute(f"EXPLAIN {way}")
    except sqlite3.Error:
        return False
    return True


def restore_virtual_tables(
    target: NewDatabase, catalog: SalvagedCatalog, tallies: Iterable[TableResult]
) -> set[str]:
    """Create virtual tables from their saved shadow tables; return the tables used up for it."""
    counts = {tally.name: tally for tally in tallies}
    used: set[str] = set()
    target.database.execute("PRAGMA legacy_alter_table=ON")  # do not change other declarations
    for name, index in unknown_virtual_tables(catalog, target.blueprint).items():
        behind = sorted(shadow_tables([name], SHADOW_SUFFIXES).intersection(target.extra))
        whole = not any(
            counts[shadow].lost or counts[shadow].unsure for shadow in behind if shadow in counts
        )
        for shadow in behind:
            target.database.execute(f"ALTER TABLE {quote_name(shadow)} RENAME TO {_aside(shadow)}")
        restored = _made(target, catalog.virtual[name], name, index, behind, whole=whole)
        content = name + "_content"
        if restored:
            used.update(behind)
            if content in counts:
                counts[content].name = name
                used.discard(content)
        else:
            kept = content in behind
            target.lost.append(
                f"the {'full-text' if index else 'virtual'} table {shown([name])}"
                + (f", whose text is in {shown([content])}" if kept else "")
            )
            if kept:
                target.database.execute(
                    f"ALTER TABLE {_aside(content)} RENAME TO {quote_name(content)}"
                )
                behind.remove(content)
            used.update(behind)
        for shadow in behind:
            target.database.execute(f"DROP TABLE {_aside(shadow)}")
    return used


def _aside(name: str) -> str:
    return quote_name(f"{name} put by")


def _made(
    target: NewDatabase,
    sql: str,
    name: str,
    index: FulltextIndex | None,
    behind: list[str],
    *,
    whole: bool,
) -> bool:
    database = target.database
    try:
        database.execute(sql)  # CREATE VIRTUAL TABLE; no module runs a query from it
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return False
    try:
        if index is not None and not index.contentless:
            settings = []
            if name + "_config" in behind:
                settings = fulltext.read_settings(database, _aside(name + "_config"))
            if index.external:
                fulltext.rebuild(database, index)
            elif name + "_content" in behind:
                fulltext.refill(database, index, _aside(name + "_content"))
            else:
                raise CannotFix("its text is lost")
            fulltext.apply_settings(database, index, settings)
        elif whole and behind and fulltext.can_write_shadow_tables():
            for shadow in behind:
                database.execute(f"DELETE FROM {quote_name(shadow)}")
                database.execute(f"INSERT INTO {quote_name(shadow)} SELECT * FROM {_aside(shadow)}")
        else:
            raise CannotFix("a part of it is lost")
        if index is not None:
            fulltext.check_integrity(database, index)
    except (sqlite3.Error, CannotFix):
        database.execute(f"DROP TABLE {quote_name(name)}")
        return False
    return True
