"""Reconstruct the schema of a damaged database from surviving schema rows and the release."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hermes_doctor.sqlite.blueprint import Blueprint, Column
from hermes_doctor.sqlite.fulltext import FulltextIndex
from hermes_doctor.sqlite.pages import LEAF
from hermes_doctor.sqlite.salvage import trees
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.schema import FTS, SchemaRow, declares_only

KINDS = ("table", "index", "trigger", "view")
FTS5_SHADOW_SUFFIXES = ("_data", "_idx", "_content", "_docsize", "_config")
SHADOW_SUFFIXES = (
    *FTS5_SHADOW_SUFFIXES,
    "_segments",
    "_segdir",
    "_stat",
    "_node",
    "_rowid",
    "_parent",
)
"""Suffixes of the shadow tables of any virtual table that SQLite includes."""

DERIVED = ("_data", "_idx", "_docsize")
"""Suffixes of a full-text table's shadow tables that can be rebuilt from its text."""

VIRTUAL, STORED = 2, 3
"""How `table_xinfo` marks generated columns: computed when read, and when written."""


@dataclass(frozen=True)
class Layout:
    """The columns of a table in the order of its records."""

    name: str
    columns: tuple[Column, ...]
    sql: str
    rowid_column: int | None = None
    """The column that is an alias of the rowid; it is NULL in the record."""
    plain: bool = True
    """An ordinary table with rowids."""
    foreign_keys: tuple[tuple[str, str, str], ...] = ()
    """The foreign keys: column, referenced table, referenced column."""
    computed: frozenset[str] = frozenset()
    """Generated columns; they are not written."""
    stored: tuple[str, ...] = ()
    """In a table without rowids: the columns in stored order, the key first."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Index:
    """An index and the columns that its entries contain before the rowid."""

    name: str
    table: str
    root: int
    columns: tuple[str, ...]
    partial: bool


@dataclass
class SalvagedCatalog:
    """The tables and indexes of the damaged database."""

    entries: list[SchemaRow]
    layouts: dict[str, Layout] = field(default_factory=dict)
    """By table: the layout that its own schema row declares."""
    indexes: list[Index] = field(default_factory=list)
    pages: set[int] = field(default_factory=set)
    """The leaves that contain the schema."""

    whole: bool = True
    """No part of the schema is missing."""

    @property
    def virtual(self) -> dict[str, str]:
        """The declarations of virtual tables."""
        return {
            entry.name: entry.sql
            for entry in self.entries
            if entry.kind == "table" and entry.sql.upper().startswith("CREATE VIRT")
        }

    def root(self, table: str) -> int:
        """The root page of a table; 0 if it is unknown."""
        return next((e.root for e in self.entries if e.kind == "table" and e.name == table), 0)


def read_catalog(survey: Survey) -> SalvagedCatalog:
    """Read the schema rows from page 1; if that is damaged, from any leaf that looks like it."""
    tree = trees.walk_table(survey, 1)
    pages = [leaf.page for leaf in tree.leaves]
    if not tree.whole or not pages:
        known = set(pages)
        pages += [
            n for n in range(2, survey.image.count + 1) if n not in known and _alike(survey, n)
        ]
    entries: dict[tuple[str, str], SchemaRow] = {}
    used = set()
    for page in pages:
        for entry in _rows(survey, page):
            used.add(page)
            entries.setdefault((entry.kind, entry.name), entry)
    catalog = SalvagedCatalog(list(entries.values()), pages=used, whole=tree.whole)
    with contextlib.closing(sqlite3.connect(":memory:")) as memory:
        memory.set_authorizer(declares_only)
        for entry in catalog.entries:
            if entry.kind == "table":
                layout = _layout(memory, entry.name, entry.sql)
                if layout:
                    catalog.layouts[entry.name] = layout
        for entry in catalog.entries:
            if entry.kind == "index" and entry.table in catalog.layouts and entry.root:
                index = _index(memory, entry)
                if index:
                    catalog.indexes.append(index)
    return catalog


def _alike(survey: Survey, page: int) -> bool:
    """Whether a leaf starts with a schema row."""
    if survey.kinds[page] != LEAF:
        return False
    cell = next(survey.cells(page, whole=False), None)
    first = cell.payload if cell else b""
    return (
        len(first) > 12
        and first[0] < 16
        and any(kind.encode() == first[first[0] : first[0] + len(kind)] for kind in KINDS)
    )


def _rows(survey: Survey, page: int) -> Iterator[SchemaRow]:
    for row in survey.rows(page):
        values = row.values
        if len(values) != 5:
            continue
        kind, name, table, root, sql = values
        if (
            kind in KINDS
            and isinstance(kind, str)
            and isinstance(name, str)
            and isinstance(table, str)
            and (root is None or isinstance(root, int))
        ):
            yield SchemaRow(kind, name, table, root or 0, sql if isinstance(sql, str) else "")


def _layout(memory: sqlite3.Connection, name: str, sql: str) -> Layout | None:
    if name.startswith("sqlite_") or not sql.upper().startswith("CREATE TABLE"):
        return None
    try:
        memory.execute(sql)
        memory.set_authorizer(None)
        return layout_of(memory, name, sql)
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    finally:
        memory.set_authorizer(declares_only)


def layout_of(database: sqlite3.Connection, name: str, sql: str) -> Layout:
    """Read the layout of a table from an open connection."""
    rows = database.execute(
        'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)',
        (name,),
    ).fetchall()
    columns = tuple(
        Column(row[0], (row[1] or "").upper(), bool(row[2]), row[3], row[4])
        for row in rows
        if row[5] != VIRTUAL
    )
    computed = frozenset(row[0] for row in rows if row[5] in (VIRTUAL, STORED))
    keys = [place for place, column in enumerate(columns) if column.key]
    single = len(keys) == 1 and columns[keys[0]].type == "INTEGER"
    plain = "WITHOUT ROWID" not in " ".join(sql.upper().split())
    sql_of_keys = 'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)'
    refers = tuple(row for row in database.execute(sql_of_keys, (name,)) if row[2] is not None)
    stored = () if plain else _stored(database, name)
    rowid = keys[0] if single and plain else None
    return Layout(name, columns, sql, rowid, plain, refers, computed, stored)


def _stored(database: sqlite3.Connection, name: str) -> tuple[str, ...]:
    """The columns of a table without rowids in stored order."""
    rows = database.execute(
        "SELECT x.name FROM pragma_index_list(?) AS i, pragma_index_xinfo(i.name) AS x "
        "WHERE i.origin = 'pk' ORDER BY x.seqno",
        (name,),
    )
    return tuple(row[0] for row in rows)


def _index(memory: sqlite3.Connection, entry: SchemaRow) -> Index | None:
    try:
        if entry.sql:
            memory.execute(entry.sql)
        memory.set_authorizer(None)
        rows = memory.execute(
            "SELECT name FROM pragma_index_xinfo(?) WHERE key", (entry.name,)
        ).fetchall()
    except (sqlite3.Error, sqlite3.Warning, ValueError):
        return None
    finally:
        memory.set_authorizer(declares_only)
    if not rows or any(row[0] is None for row in rows):
        return None
    partial = " WHERE " in " ".join(entry.sql.upper().split())
    return Index(entry.name, entry.table, entry.root, tuple(row[0] for row in rows), partial)


def expected_layouts(blueprint: Blueprint) -> dict[str, list[Layout]]:
    """The possible layouts of a release's tables; they depend on the releases of past upgrades."""
    layouts: dict[str, list[Layout]] = {}
    for name, table in blueprint.tables.items():
        orders = (tuple(column.name for column in table.columns), *table.orders)
        seen: dict[tuple[str, ...], Layout] = {}
        for order in orders:
            columns = tuple(c for c in map(table.column, order) if c is not None)
            columns = tuple(
                Column(c.name, c.type.upper(), c.notnull, c.default, c.key) for c in columns
            )
            keys = [place for place, column in enumerate(columns) if column.key]
            single = len(keys) == 1 and columns[keys[0]].type == "INTEGER"
            rowid = keys[0] if single else None
            seen.setdefault(
                tuple(column.name for column in columns), Layout(name, columns, table.sql, rowid)
            )
        layouts[name] = list(seen.values())
    return layouts


def shadow_tables(
    virtual: Iterable[str], suffixes: Sequence[str] = FTS5_SHADOW_SUFFIXES
) -> set[str]:
    """The names of the shadow tables of these virtual tables."""
    return {name + suffix for name in virtual for suffix in suffixes}


def content_layout(name: str) -> Layout:
    """The layout of the shadow table in which a one-column full-text table copies its text."""
    columns = (Column("id", "INTEGER", key=1), Column("c0", "TEXT"))
    return Layout(name, columns, "", 0)


def unknown_virtual_tables(
    catalog: SalvagedCatalog, blueprint: Blueprint
) -> dict[str, FulltextIndex | None]:
    """Virtual tables that the release does not know; with an `Index` if they are FTS5 tables."""
    return {
        name: FulltextIndex(name, sql) if FTS.match(sql) else None
        for name, sql in catalog.virtual.items()
        if name not in blueprint.virtual
    }


def rebuildable_tables(catalog: SalvagedCatalog, blueprint: Blueprint) -> set[str]:
    """The shadow tables that need not be saved, because they are rebuilt."""
    indexes = unknown_virtual_tables(catalog, blueprint).values()
    return shadow_tables([i.name for i in indexes if i and not i.contentless], DERIVED)
