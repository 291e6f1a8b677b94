"""The fresh database that the rows go into."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.cells import Raw
from hermes_doctor.sqlite.column_rules import quoted
from hermes_doctor.sqlite.salvage import virtual_tables
from hermes_doctor.sqlite.salvage.catalog import BEHIND, Catalog, Layout, layout_of, shadows
from hermes_doctor.sqlite.salvage.image import Image
from hermes_doctor.sqlite.schema import declares_only
from hermes_doctor.system.files import shown

CACHE = "PRAGMA cache_size=-8192"
"""8 MB, whatever the size of the database."""


LARGEST = 512 * 1024 * 1024
"""Bytes of a value, so that a declaration out of the damaged file cannot ask for more."""
TYPE = re.compile(r"[A-Z0-9 ]*", re.ASCII)
LITERAL = re.compile(r"-?\d+(\.\d+)?|'(?:[^']|'')*'", re.ASCII)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that nobody else knows of, and that is thrown away on any failure."""
    database = sqlite3.connect(path, isolation_level=None, timeout=60, check_same_thread=False)
    database.execute("PRAGMA synchronous=OFF")
    database.execute("PRAGMA foreign_keys=OFF")
    database.execute(CACHE)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    return database


class Target:
    """Tables first; indexes, full text and triggers when all rows are in."""

    def __init__(self, path: Path, blueprint: Blueprint, catalog: Catalog, image: Image) -> None:
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
        (mode,) = self.database.execute("PRAGMA journal_mode=WAL").fetchone()
        self.shared = mode == "wal"
        """Rows can be read by others while more are written; not so on some network drives."""
        for name, table in blueprint.tables.items():
            if not table.lazy or name in catalog.layouts:
                self.database.execute(table.sql)
                self._widen(name, catalog.layouts.get(name))
                self.layouts[name] = layout_of(self.database, name, table.sql)
        self._extra_tables(catalog)

    def _widen(self, name: str, live: Layout | None) -> None:
        """Columns that the damaged table has and its release does not know are kept."""
        if live is None:
            return
        here = {column.name.lower() for column in layout_of(self.database, name, live.sql).columns}
        for column in live.columns:
            if column.name.lower() in here or column.key:
                continue
            # Both come from the damaged file, so only what is harmless is repeated.
            kind = column.type if TYPE.fullmatch(column.type) else ""
            plain = column.default is not None and LITERAL.fullmatch(column.default)
            default = f" DEFAULT {column.default}" if plain else ""
            try:
                self.database.execute(
                    f"ALTER TABLE {quoted(name)} ADD COLUMN {quoted(column.name)} {kind}{default}"
                )
            except sqlite3.Error:
                self.lost.append(f"a column of {name} that its release does not know")
        if live.computed:
            self.lost.append(f"computed columns of {name} that its release does not know")

    def _extra_tables(self, catalog: Catalog) -> None:
        """Tables that the release does not know are kept as they declare themselves.

        Behind a virtual one, only what holds something that can be had nowhere else.
        """
        hidden = shadows(self.blueprint.virtual) | virtual_tables.derived(catalog, self.blueprint)
        behind = shadows(catalog.virtual, BEHIND)
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
        """Let the damaged file declare something; whether SQLite took it."""
        self.database.set_authorizer(declares_only)
        try:
            self.database.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return False
        finally:
            self.database.set_authorizer(None)
        return True

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> int:
        """Add rows; one whose key is there already is left out. How many were added."""
        names = ", ".join(map(quoted, columns))
        marks = ", ".join("?" * len(columns))
        if isinstance(rows, list) and len(rows) == 1:  # text that is no text can only be cast
            marks = ", ".join("CAST(? AS TEXT)" if type(v) is Raw else "?" for v in rows[0])
        before = self.database.total_changes
        self.database.execute("BEGIN")
        try:
            self.database.executemany(
                f"INSERT OR IGNORE INTO {quoted(table)} ({names}) VALUES ({marks})", rows
            )
        finally:
            self.database.execute("COMMIT")
        return self.database.total_changes - before

    def build_indexes(self, catalog: Catalog) -> None:
        """All indexes; where a unique one cannot be, the values in its way are cleared."""
        for name, sql in self.blueprint.indexes.items():
            if self.blueprint.table_of.get(name) in {None, *self.layouts}:
                self._index(sql)
        for entry in catalog.entries:
            if entry.kind != "index" or not entry.sql or entry.name in self.blueprint.indexes:
                continue
            if entry.table in self.layouts and not self.declare(entry.sql):
                self.lost.append(f"the index {shown([entry.name])}")

    def _index(self, sql: str) -> None:
        try:
            self.database.execute(sql)
        except sqlite3.IntegrityError:
            self._clear_duplicates(sql)
            self.database.execute(sql)

    def _clear_duplicates(self, sql: str) -> None:
        """Damage can make two values equal that must differ; the later one is taken away."""
        plain = sql.replace("UNIQUE ", "", 1).replace("unique ", "", 1)
        self.database.execute(plain)
        name, table = self.database.execute(
            "SELECT name, tbl_name FROM sqlite_master WHERE type='index' ORDER BY rowid DESC"
        ).fetchone()
        columns = [
            row[0]
            for row in self.database.execute(
                "SELECT name FROM pragma_index_xinfo(?) WHERE key", (name,)
            )
        ]
        self.database.execute(f"DROP INDEX {quoted(name)}")
        fields = ", ".join(map(quoted, columns))
        later = (
            f"rowid NOT IN (SELECT min(rowid) FROM {quoted(table)} GROUP BY {fields}) AND "
            + " AND ".join(f"{quoted(column)} IS NOT NULL" for column in columns)
        )
        loose = [c for c in self.layouts[table].columns if c.name in columns and not c.notnull]
        if loose:
            change = f"UPDATE {quoted(table)} SET {quoted(loose[-1].name)} = NULL WHERE {later}"
        else:
            change = f"DELETE FROM {quoted(table)} WHERE {later}"
        count = self.database.execute(change).rowcount
        self.notes.append(f"Rows of {table} that lost a value which must be unique: {count:,}.")

    def dangling(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table that refer to rows which are not there."""
        return self.database.execute(f"PRAGMA foreign_key_check({quoted(name)})").fetchall()

    def finish(self) -> None:
        """One file, nothing beside it."""
        self.database.execute("PRAGMA journal_mode=DELETE")

    def prove(self) -> tuple[str, ...]:
        """Raise unless SQLite itself finds the result sound."""
        found = [row[0] for row in self.database.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise CannotFix("the salvaged database does not pass SQLite's integrity check")
        for name in self.layouts:
            if name not in self.extra and self.dangling(name):
                raise CannotFix("rows of the salvaged database refer to rows that are not there")
        return ("integrity_check", "foreign_key_check")
