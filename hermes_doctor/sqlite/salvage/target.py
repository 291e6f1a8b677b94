"""Create and fill the new database of a salvage."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.blueprint import Blueprint, quote_name
from hermes_doctor.sqlite.examine.soundness import integrity_errors
from hermes_doctor.sqlite.pages import RawText
from hermes_doctor.sqlite.salvage.account import LOST_VALUE, PartialRows, key_in
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.layouts import (
    SHADOW_SUFFIXES,
    Layout,
    SalvagedCatalog,
    layout_of,
    rebuildable_tables,
    shadow_tables,
)
from hermes_doctor.sqlite.salvage.row_fit import LITERAL
from hermes_doctor.sqlite.schema import declares_only

CACHE = "PRAGMA cache_size=-8192"
"""8 MB, whatever the size of the database."""


LARGEST = 512 * 1024 * 1024
"""The most bytes of a value; a declaration from the damaged file must not need more."""
TYPE = re.compile(r"[A-Z0-9 ]*", re.ASCII)


def connect(path: Path) -> sqlite3.Connection:
    """Connect to a private file that is deleted on any failure, so it needs no syncing."""
    database = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
    database.execute("PRAGMA synchronous=OFF")
    database.execute("PRAGMA foreign_keys=OFF")
    database.execute(CACHE)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    return database


class NewDatabase:
    """The new database; indexes, full text and triggers are created after all rows."""

    def __init__(
        self, path: Path, blueprint: Blueprint, catalog: SalvagedCatalog, image: DamagedFile
    ) -> None:
        self.path = path
        self.blueprint = blueprint
        self.notes: list[str] = []
        self.lost: list[str] = []
        """What could not be carried over, by kind and name."""
        self.layouts: dict[str, Layout] = {}
        self.extra: list[str] = []
        self.database = connect(path)
        self.database.execute(f"PRAGMA page_size={image.page_size}")
        self.database.execute(f"PRAGMA auto_vacuum={image.auto_vacuum}")
        self.database.execute("PRAGMA journal_mode=WAL")
        for name, table in blueprint.tables.items():
            if not table.created_on_demand or name in catalog.layouts:
                self.database.execute(table.sql)
                self._widen(name, catalog.layouts.get(name))
                self.layouts[name] = layout_of(self.database, name, table.sql)
        self._extra_tables(catalog)
        for sql in blueprint.views.values():
            self.database.execute(sql)

    def _widen(self, name: str, live: Layout | None) -> None:
        """Add the columns of the damaged table that its release does not know."""
        if live is None:
            return
        here = {column.name.lower() for column in layout_of(self.database, name, live.sql).columns}
        for column in live.columns:
            if column.name.lower() in here or column.key:
                continue
            # Type and default come from the damaged file, so only harmless ones are used.
            kind = column.type if TYPE.fullmatch(column.type) else ""
            plain = column.default is not None and LITERAL.fullmatch(column.default)
            default = f" DEFAULT {column.default}" if plain else ""
            try:
                self.database.execute(
                    f"ALTER TABLE {quote_name(name)} "
                    f"ADD COLUMN {quote_name(column.name)} {kind}{default}"
                )
            except sqlite3.Error:
                self.lost.append(f"a column of {name} that its release does not know")
        if live.computed:
            self.lost.append(f"computed columns of {name} that its release does not know")

    def _extra_tables(self, catalog: SalvagedCatalog) -> None:
        """Create the tables that the release does not know, as the damaged file declares them.

        Shadow tables of a virtual table are created only if their content cannot be rebuilt.
        """
        hidden = shadow_tables(self.blueprint.virtual) | rebuildable_tables(catalog, self.blueprint)
        behind = shadow_tables(catalog.virtual, SHADOW_SUFFIXES)
        for entry in catalog.entries:
            name = entry.name
            if entry.kind != "table" or name in {*self.layouts, *hidden, *catalog.virtual}:
                continue
            if name.startswith("sqlite_"):
                continue
            layout = catalog.layouts.get(name)
            if layout is not None and self.declare(layout.sql):
                self.layouts[name] = layout
                self.extra.append(name)
            elif name not in behind:
                self.lost.append(f"the table {shown([name])}")

    def declare(self, sql: str) -> bool:
        """Run a declaration from the damaged file; return whether SQLite accepted it."""
        self.database.set_authorizer(declares_only)
        try:
            self.database.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return False
        finally:
            self.database.set_authorizer(None)
        return True

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Add rows and return how many were added; rows with an existing key are skipped."""
        names = ", ".join(map(quote_name, columns))
        marks = ", ".join("?" * len(columns))
        if isinstance(rows, list) and len(rows) == 1:  # a cast stores invalid UTF-8
            marks = ", ".join("CAST(? AS TEXT)" if type(v) is RawText else "?" for v in rows[0])
        before = self.database.total_changes
        self.database.execute("BEGIN")
        try:
            self.database.executemany(
                f"INSERT OR IGNORE INTO {quote_name(table)} ({names}) VALUES ({marks})", rows
            )
        finally:
            self.database.execute("COMMIT")
        return self.database.total_changes - before

    def build_indexes(self, catalog: SalvagedCatalog) -> None:
        """Create all indexes; duplicate values that prevent a unique one are cleared."""
        for name, sql in self.blueprint.indexes.items():
            if self.blueprint.table_of.get(name) in {None, *self.layouts}:
                try:
                    self.database.execute(sql)
                except sqlite3.IntegrityError:
                    self._clear_duplicates(sql)
                    self.database.execute(sql)
        for entry in catalog.entries:
            if entry.kind != "index" or not entry.sql or entry.name in self.blueprint.indexes:
                continue
            if entry.table in self.layouts and not self.declare(entry.sql):
                self.lost.append(f"the index {shown([entry.name])}")

    def _clear_duplicates(self, sql: str) -> None:
        """Clear the later of two values that damage made equal although they must be unique."""
        plain = sql.replace("UNIQUE ", "", 1).replace("unique ", "", 1)
        self.database.execute(plain)
        name, table = self.database.execute(
            "SELECT name, tbl_name FROM sqlite_master WHERE type='index' ORDER BY rowid DESC"
        ).fetchone()
        keys = self.database.execute("SELECT name FROM pragma_index_xinfo(?) WHERE key", (name,))
        columns = [row[0] for row in keys]
        self.database.execute(f"DROP INDEX {quote_name(name)}")
        name, fields = quote_name(table), ", ".join(map(quote_name, columns))
        filled = " AND ".join(f"{quote_name(column)} IS NOT NULL" for column in columns)
        later = f"rowid NOT IN (SELECT min(rowid) FROM {name} GROUP BY {fields}) AND {filled}"
        loose = [c for c in self.layouts[table].columns if c.name in columns and not c.notnull]
        change = f"DELETE FROM {name} WHERE {later}"
        if loose:
            change = f"UPDATE {name} SET {quote_name(loose[-1].name)} = NULL WHERE {later}"
        rowids = self.database.execute(f"SELECT rowid FROM {name} WHERE {later}")
        lost = PartialRows()
        for key in self.keys(table, [row[0] for row in rowids]):
            lost.add(LOST_VALUE, [loose[-1].name if loose else "the whole row"], key)
        count = self.database.execute(change).rowcount
        self.notes.append(f"Rows of {table} that lost a value which must be unique: {count:,}.")
        self.notes += lost.sentences(table)

    def keys(self, table: str, rowids: Iterable[int]) -> Iterator[object]:
        """What identifies these rows for people: the primary key, else the rowid."""
        layout = self.layouts[table]
        columns = [column.name for column in layout.columns if column.key]
        wanted = quote_name(columns[0]) if len(columns) == 1 else "rowid"
        find = f"SELECT {wanted} FROM {quote_name(table)} WHERE rowid = ?"
        for rowid in rowids:
            row = self.database.execute(find, (rowid,)).fetchone()
            values = dict(zip(columns, row or (), strict=False))
            yield key_in(layout, values, rowid)

    def dangling_rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table that refer to missing rows."""
        return self.database.execute(f"PRAGMA foreign_key_check({quote_name(name)})").fetchall()

    def foreign_keys(self, name: str) -> Iterator[tuple[str, str, str]]:
        """The foreign keys of a table: column, referenced table, referenced column."""
        keys: dict[int, list[tuple[str, str, str | None]]] = {}
        for row in self.database.execute(f"PRAGMA foreign_key_list({quote_name(name)})"):
            keys.setdefault(row[0], []).append((row[3], row[2], row[4]))
        for pairs in keys.values():
            child, parent, column = pairs[0]
            if len(pairs) == 1 and parent in self.layouts:
                own = next((c.name for c in self.layouts[parent].columns if c.key), "rowid")
                yield child, parent, column or own

    def refers_to_others(self, name: str) -> bool:
        """Whether a table refers to other tables, which then have to be completed first."""
        return any(parent != name for _, parent, _ in self.foreign_keys(name))

    def prove(self) -> tuple[str, ...]:
        """Raise unless SQLite finds the new database sound."""
        if integrity_errors(self.database, 3):
            raise CannotFix("the salvaged database does not pass SQLite's integrity check")
        for name in self.layouts:
            if name not in self.extra and self.dangling_rows(name):
                raise CannotFix("rows of the salvaged database refer to missing rows")
        return ("integrity_check", "foreign_key_check")
