"""Rebuild full-text tables from the rows that they index.

FTS5's own 'rebuild' reads the table's copy of the text, so rows missing there stay missing, and it
fails on physical damage; a damaged full-text table cannot even be dropped. So its row in the
schema is deleted first, which turns its shadow tables into ordinary tables.

All full-text tables of the release are rebuilt from its rows. A table that is not Hermes' own is
changed only if it is damaged itself. It is then rebuilt from the text that it stores, because
there is no other copy.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import fulltext, fulltext_coverage
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.catalog import FTS, HERMES_FULLTEXT, SHADOWS
from hermes_doctor.sqlite.column_rules import quote_name
from hermes_doctor.sqlite.fulltext_coverage import HIGH_WATER, META, PROGRESS
from hermes_doctor.sqlite.fulltext_options import foreign_tokenizer
from hermes_doctor.sqlite.integrity import integrity_errors
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs import foreign_fulltext, fulltext_views
from hermes_doctor.sqlite.repairs.work import (
    delete_schema_rows,
    open_copy,
    transaction,
)
from hermes_doctor.system.files import shown


def rebuild(copy: Path, blueprint: Blueprint | None) -> list[str]:
    """Remove the full-text tables and create them again, with their triggers.

    The declarations of the file take precedence; the blueprint, if any, supplies missing ones.
    """
    with open_copy(copy, lenient=True) as connection:
        tables = _declared(connection, "table")
        triggers = _declared(connection, "trigger")
    virtual = {name: sql for name, sql in tables.items() if FTS.match(sql)}
    wanted = dict(blueprint.triggers) if blueprint else {}
    virtual = (dict(blueprint.virtual) if blueprint else {}) | virtual
    known = {*HERMES_FULLTEXT, *(blueprint.virtual if blueprint else ())}
    opens = {name: sql for name, sql in virtual.items() if not foreign_tokenizer(sql)}
    indexes = fulltext.parse_indexes(opens, wanted | triggers)
    own = [index for index in indexes if index.name in known]
    theirs = [index for index in indexes if index.name not in known and _hit(copy, index, tables)]
    if theirs and not any(_hit(copy, index, tables) for index in own):
        own = []  # only tables that are not Hermes' own are damaged
    if not (own or theirs) or not all(index.table or index.external for index in own):
        raise CannotFix("the source of its search index is unknown")
    said = foreign_fulltext.rebuild(copy, theirs, _take_out) if theirs else []
    if own:
        _take_out(copy, [index.name for index in own])
    missing = {name: sql for name, sql in wanted.items() if name not in triggers}
    views = dict(blueprint.views) if blueprint else {}
    said = _fill(copy, own, missing, views) + said
    with open_copy(copy) as connection:  # a new connection, without cached state
        for index in (*own, *theirs):
            fulltext.check_integrity(connection, index)
            if index in own and index.external:
                with fulltext_views.allow_view(connection, index):
                    fulltext.check_integrity(connection, index, compare_content=True)
        if integrity_errors(
            connection, 1
        ):  # pages of a table that was already missing from the schema
            connection.execute("VACUUM")
    return said


def _fill(
    copy: Path,
    indexes: Sequence[fulltext.FulltextIndex],
    missing: dict[str, str],
    views: dict[str, str],
) -> list[str]:
    """Fill all of them in one transaction, and end a rebuild that Hermes has not finished.

    Otherwise Hermes would continue it and index the remaining rows a second time.
    """
    said = []
    with open_copy(copy) as connection, transaction(connection):
        there = _declared(connection, "view")
        for name, sql in views.items():
            if name not in there:
                connection.execute(sql)
                said.append(f"The view {name} was created again.")
        for index in indexes:
            fulltext.fill(connection, index, permit=fulltext_views.allow_view)
            (rows,) = connection.execute(fulltext.row_count_sql(index)).fetchone()
            said.append(f"{shown([index.name])} was rebuilt from {rows} rows.")
        for name, sql in missing.items():
            if any(index.name in sql for index in indexes):
                connection.execute(sql)
                said.append(f"The trigger {name} was rebuilt.")
        if indexes and end_rebuild(connection):
            said.append("The rebuild that Hermes had not finished is complete.")
    return said


def end_rebuild(connection: sqlite3.Connection) -> bool:
    """Delete the two numbers with which Hermes would continue a rebuild."""
    there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    if connection.execute(there, [META]).fetchone() is None:
        return False
    keys = [HIGH_WATER, PROGRESS]
    return connection.execute(f"DELETE FROM {META} WHERE key IN (?, ?)", keys).rowcount > 0


def _declared(connection: sqlite3.Connection, kind: str) -> dict[str, str]:
    rows = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = ? AND typeof(sql) = 'text'", (kind,)
    )
    return {str(name): str(sql) for name, sql in rows}


def _hit(copy: Path, index: fulltext.FulltextIndex, tables: dict[str, str]) -> bool:
    """Whether a full-text table is missing, damaged, or lacks rows that it should have."""
    if index.name not in tables:
        return True
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema=ON")  # whatever else is damaged
            for shadow in (f"{index.name}_{part}" for part in SHADOWS):
                check = f"PRAGMA quick_check({quote_name(shadow)})"
                if shadow in tables and connection.execute(check).fetchone() != ("ok",):
                    return True
            fulltext.check_integrity(connection, index)
            return index.name in HERMES_FULLTEXT and _differs(connection, index)
    except (sqlite3.DatabaseError, CannotFix):
        return True


def _differs(connection: sqlite3.Connection, index: fulltext.FulltextIndex) -> bool:
    catalog, reader = fulltext_views.catalog_of(connection), OnConnection(connection)
    rebuild = fulltext_coverage.rebuild_of(reader, catalog, None)
    found = fulltext_coverage.compare_with_source(
        reader, catalog, index.name, rebuild, seconds=None, whole=True
    )
    return isinstance(found, fulltext_coverage.FulltextFlaw)


def _take_out(copy: Path, tables: Sequence[str]) -> None:
    """Remove full-text tables that may be too damaged to be dropped."""
    _forget(copy, tables)
    stubborn = []
    for shadow in (f"{name}_{part}" for name in tables for part in SHADOWS):
        try:
            with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
                connection.execute(f"DROP TABLE IF EXISTS {quote_name(shadow)}")
        except sqlite3.DatabaseError:
            stubborn.append(shadow)
    if stubborn:
        _forget(copy, stubborn)
        with open_copy(copy) as connection:
            connection.execute("VACUUM")  # frees their pages, which no table owns now


def _forget(copy: Path, tables: Sequence[str]) -> None:
    """Delete tables from the schema, duplicate rows included; their triggers are kept."""
    marks = ", ".join("?" for _ in tables)
    delete_schema_rows(copy, f"tbl_name IN ({marks}) AND type != 'trigger'", tables)
