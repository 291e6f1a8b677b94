"""Look up rows in other files: sound older copies of the damaged database."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.cells import LOST, LostValue, ReplacedText, Row, Value
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.salvage.layouts import Layout, layout_of


@dataclass(frozen=True)
class OlderFile:
    """Another file that may have rows, and its name for the user."""

    path: Path
    name: str
    """How the account names it: `state-snapshots/20260101-0000/state.db`."""
    when: float = 0.0
    """When it was made; the newest is used first."""


FoundRow = tuple[dict[str, Value], str]
"""The values of a row of another database, and the name of that file."""


class OlderCopies:
    """The databases among the sources, newest first; they are opened when first needed."""

    def __init__(self, sources: Sequence[OlderFile], scratch_path: Path) -> None:
        """`scratch_path` is a private path; copies get names that start with it."""
        self.scratch_path = scratch_path
        self._copies: list[Path] = []
        self.sources = sorted(
            (s for s in sources if s.path.suffix not in (".json", ".jsonl")),
            key=lambda source: -source.when,
        )
        self._open: list[tuple[OlderFile, sqlite3.Connection]] | None = None
        self.refused: list[str] = []
        self._layouts: dict[tuple[int, str], Layout | None] = {}

    def _databases(self) -> list[tuple[OlderFile, sqlite3.Connection]]:
        if self._open is None:
            self._open = []
            for source in self.sources:
                database = self._opened(source.path)
                if database is None:
                    self.refused.append(source.name)
                else:
                    self._open.append((source, database))
        return self._open

    def close(self) -> None:
        """Close all databases and delete the copies."""
        for _, database in self._open or ():
            database.close()
        for copy in self._copies:
            for path in (copy, *sidecars(copy)):
                disk.remove(path)

    def _opened(self, path: Path) -> sqlite3.Connection | None:
        """Open a database without changing it; None unless SQLite finds it sound.

        A database with a write-ahead log is copied first, because SQLite writes while reading the
        two. If the copy is damaged by a foreign log, the file is opened without the log.
        """
        if snapshot(path).kind != "file":
            return None
        log = path.with_name(path.name + "-wal")
        if snapshot(log).kind == "file" and snapshot(log).size:
            pair = self._copied(path, log)
            if pair is not None:
                return pair
        return _sound(f"file:{quote(str(path))}?mode=ro&immutable=1")

    def _copied(self, path: Path, log: Path) -> sqlite3.Connection | None:
        """A connection to a copy of a database and its log."""
        copy = self.scratch_path.with_name(f"{self.scratch_path.name}-other-{len(self._copies)}")
        self._copies.append(copy)
        try:
            for source, target in ((path, copy), (log, copy.with_name(copy.name + "-wal"))):
                with disk.new_file(target) as fd:
                    disk.copy(source, fd)
        except OSError:  # the disk is full
            return None
        return _sound(f"file:{quote(str(copy))}")

    def rowids(self, layout: Layout) -> Iterator[int]:
        """The rowids of a table in all databases."""
        seen: set[int] = set()
        for place, (_, database) in enumerate(self._databases()):
            if self._columns(place, layout) is None:
                continue
            with contextlib.suppress(sqlite3.Error):
                for (rowid,) in database.execute(f"SELECT rowid FROM {quote_name(layout.name)}"):
                    if rowid not in seen:
                        seen.add(rowid)
                        yield rowid

    def row(self, layout: Layout, rowid: int, facts: Mapping[str, Value]) -> FoundRow | None:
        """The newest row with this rowid or key that does not contradict the known values."""
        keys = [column.name for column in layout.columns if column.key]
        for place, (source, database) in enumerate(self._databases()):
            columns = self._columns(place, layout)
            if columns is None:
                continue
            if layout.rowid_column is not None:
                where, values = "rowid = ?", [rowid]
            elif keys and all(facts.get(key) is not None for key in keys):
                where = " AND ".join(f"{quote_name(key)} = ?" for key in keys)
                values = [facts[key] for key in keys]  # type: ignore[misc]
            else:
                continue
            row = _one(database, layout.name, columns, where, values)
            if row is None or any(
                column in row and value is not None and row[column] != value
                for column, value in facts.items()
            ):
                continue
            return row, source.name
        return None

    def complete(self, layout: Layout, row: Row) -> str:
        """Fill the lost values of a row from the same row elsewhere; return that source's name.

        It is the same row if all remaining values are equal.
        """
        facts: dict[str, Value] = {
            column.name: value
            for column, value in zip(layout.columns, row.values, strict=False)
            if not isinstance(value, LostValue | ReplacedText) and value is not None
        }
        older_row = self.row(layout, row.rowid, facts)
        if older_row is None:
            return ""
        values, source = older_row
        for place, value in enumerate(row.values):
            if value is LOST and layout.columns[place].name in values:
                row.values[place] = values[layout.columns[place].name]
        return "" if LOST in row.values else source

    def _columns(self, place: int, layout: Layout) -> list[str] | None:
        """The columns that a table has in both databases."""
        key = (place, layout.name)
        if key not in self._layouts:
            _, database = self._databases()[place]
            theirs = layout_of(database, layout.name, layout.sql)
            self._layouts[key] = theirs if theirs.columns else None
        theirs_or_none = self._layouts[key]
        if theirs_or_none is None:
            return None
        names = {name.lower() for name in theirs_or_none.names}
        return [name for name in layout.names if name.lower() in names]


def _one(
    database: sqlite3.Connection, table: str, columns: list[str], where: str, values: list[Any]
) -> dict[str, Value] | None:
    fields = ", ".join(map(quote_name, columns))
    try:
        row = database.execute(
            f"SELECT {fields} FROM {quote_name(table)} WHERE {where}", values
        ).fetchone()
    except (sqlite3.Error, OverflowError):
        return None
    return dict(zip(columns, row, strict=True)) if row else None


def _sound(address: str) -> sqlite3.Connection | None:
    """A connection to a database that passes SQLite's quick_check; else None."""
    database = None
    try:
        database = sqlite3.connect(address, uri=True, check_same_thread=False)
        database.execute("PRAGMA trusted_schema=OFF")
        if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",):
            return database
    except sqlite3.Error:
        pass
    if database is not None:
        database.close()
    return None
