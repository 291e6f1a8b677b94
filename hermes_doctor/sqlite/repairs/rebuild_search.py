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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite import fulltext, query_process
from hermes_doctor.sqlite.blueprint import Blueprint, quote_name
from hermes_doctor.sqlite.examine.fulltext_check import FulltextCheck, FulltextFlaw
from hermes_doctor.sqlite.examine.soundness import integrity_errors
from hermes_doctor.sqlite.reader import OnConnection
from hermes_doctor.sqlite.repairs.work import delete_schema_rows, open_copy, transaction
from hermes_doctor.sqlite.schema import (
    FTS,
    HERMES_FULLTEXT,
    SHADOWS,
    Catalog,
    SchemaRow,
    foreign_tokenizer,
    options,
)

STEPS = 100_000
"""SQLite instructions after which the limit is checked."""
LEAST, PER_PAGE = 1000, 10
"""How many such checks are allowed: for any database, and for each of its pages. Hermes' own views
need a few instructions for each row, and a page has about ten rows."""


@contextmanager
def allow_view(connection: sqlite3.Connection, index: fulltext.FulltextIndex) -> Iterator[None]:
    """Trust the schema within limits while an index reads its text from a view."""
    catalog = catalog_of(connection)
    source = options(index.sql).get("content", "")
    if not any((entry.kind, entry.name) == ("view", source) for entry in catalog.entries):
        yield
        return
    tables = [e.name for e in catalog.entries if e.kind == "table" and not FTS.match(e.sql)]
    own = [index.name, *(f"{index.name}_{shadow}" for shadow in SHADOWS)]
    [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
    checks_left = LEAST + PER_PAGE * int(pages)

    def takes_too_long() -> bool:
        nonlocal checks_left
        checks_left -= 1
        return checks_left < 0

    connection.execute("PRAGMA trusted_schema=ON")
    connection.set_authorizer(query_process.reads_only([source, *tables], own))
    connection.set_progress_handler(takes_too_long, STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if checks_left >= 0:
            raise
        raise CannotFix("the view {source} takes too long to evaluate", source=source) from error
    finally:
        connection.set_progress_handler(None, 0)
        connection.set_authorizer(None)
        connection.execute("PRAGMA trusted_schema=OFF")


def catalog_of(connection: sqlite3.Connection) -> Catalog:
    """Read the schema of an open database."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(rootpage, 0), coalesce(sql, '') FROM sqlite_master"
    )
    return Catalog(tuple(SchemaRow(*row) for row in rows))


def rebuild_foreign(copy: Path, indexes: Sequence[fulltext.FulltextIndex]) -> list[str]:
    """Save their rows and fill new tables with them; raise if that text is damaged too."""
    sentences = []
    for index in indexes:
        if index.contentless:
            raise CannotFix(
                "{index} stores no text from which it could be rebuilt", index=shown([index.name])
            )
        settings = [] if index.external else _put_by(copy, index)
        _take_out(copy, [index.name])
        with open_copy(copy) as connection:
            if index.external:
                fulltext.fill(connection, index, permit=allow_view)
            else:
                fulltext.create(connection, index)
                fulltext.refill(connection, index, _aside(index))
                fulltext.clear_settings(connection, index)
                fulltext.apply_settings(connection, index, settings)
                connection.execute(f"DROP TABLE {_aside(index)}")
            (rows,) = connection.execute(fulltext.row_count_sql(index)).fetchone()
        whence = "its table" if index.external else "the text it keeps"
        sentences.append(f"{shown([index.name])} was rebuilt from {whence}, {rows} rows.")
    return sentences


def _aside(index: fulltext.FulltextIndex) -> str:
    return quote_name(f"{index.name} put by")


def _put_by(copy: Path, index: fulltext.FulltextIndex) -> list[tuple[str, object]]:
    """Copy its text into a temporary table; return its settings."""
    try:
        with open_copy(copy, lenient=True) as connection:
            name = quote_name(index.name + "_content")
            connection.execute(f"CREATE TABLE {_aside(index)} AS SELECT * FROM {name}")
            try:
                return fulltext.read_settings(connection, quote_name(index.name + "_config"))
            except sqlite3.DatabaseError:  # settings only affect speed
                return []
    except CannotFix as why:
        raise CannotFix(
            "the text that {index} stores is damaged, too", index=shown([index.name])
        ) from why


def rebuild_tables(copy: Path, blueprint: Blueprint | None) -> list[str]:
    """Remove the full-text tables and create them again, with their triggers.

    The declarations of the file take precedence; the blueprint, if any, supplies missing ones.
    """
    with open_copy(copy, lenient=True) as connection:
        tables = _declared(connection, "table")
        triggers = _declared(connection, "trigger")
    virtual = {name: sql for name, sql in tables.items() if FTS.match(sql)}
    wanted, views, known = dict[str, str](), dict[str, str](), {*HERMES_FULLTEXT}
    if blueprint:
        wanted, views = dict(blueprint.triggers), dict(blueprint.views)
        known |= {*blueprint.virtual}
        virtual = {**blueprint.virtual, **virtual}
    opens = {name: sql for name, sql in virtual.items() if not foreign_tokenizer(sql)}
    indexes = fulltext.parse_indexes(opens, wanted | triggers)
    own = [index for index in indexes if index.name in known]
    theirs = [index for index in indexes if index.name not in known and _hit(copy, index, tables)]
    if theirs and not any(_hit(copy, index, tables) for index in own):
        own = []  # only tables that are not Hermes' own are damaged
    if not (own or theirs) or not all(index.table or index.external for index in own):
        raise CannotFix("the source of its search index is unknown")
    sentences = rebuild_foreign(copy, theirs)
    if own:
        _take_out(copy, [index.name for index in own])
    missing = {name: sql for name, sql in wanted.items() if name not in triggers}
    sentences = _fill(copy, own, missing, views) + sentences
    with open_copy(copy) as connection:  # a new connection, without cached state
        for index in (*own, *theirs):
            fulltext.check_integrity(connection, index)
            if index in own and index.external:
                with allow_view(connection, index):
                    fulltext.check_integrity(connection, index, compare_content=True)
        if integrity_errors(connection, 1):  # pages of a table that was missing from the schema
            connection.execute("VACUUM")
    return sentences


def _fill(
    copy: Path,
    indexes: Sequence[fulltext.FulltextIndex],
    missing: dict[str, str],
    views: dict[str, str],
) -> list[str]:
    """Fill all of them, and end a rebuild of Hermes, which would index rows a second time."""
    sentences = []
    with open_copy(copy) as connection, transaction(connection):
        there = _declared(connection, "view")
        for name, sql in views.items():
            if name not in there:
                connection.execute(sql)
                sentences.append(f"The view {name} was created again.")
        for index in indexes:
            fulltext.fill(connection, index, permit=allow_view)
            (rows,) = connection.execute(fulltext.row_count_sql(index)).fetchone()
            sentences.append(f"{shown([index.name])} was rebuilt from {rows} rows.")
        for name, sql in missing.items():
            if any(index.name in sql for index in indexes):
                connection.execute(sql)
                sentences.append(f"The trigger {name} was rebuilt.")
        if indexes and fulltext.end_rebuild(connection):
            sentences.append("The rebuild that Hermes had not finished is complete.")
    return sentences


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
    check = FulltextCheck(OnConnection(connection), catalog_of(connection), None, whole=True)
    return isinstance(check.compare_with_source(index.name), FulltextFlaw)


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
