"""Read the schema of a database without opening it with SQLite."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import pages, table_rows, wal
from hermes_doctor.sqlite.blueprint import Column
from hermes_doctor.system import time_limits
from hermes_doctor.system.files import Snapshot, open_regular, read_head, snapshot

MOST_PAGES = 2000
"""A schema fills a few pages; Hermes' largest fills ten."""
PATIENCE = 1.0
"""Seconds for repeated reading while another process writes."""
_SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")
_USER_VERSION, _APPLICATION_ID = 60, 68
_COLUMNS = """SELECT m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk
FROM sqlite_master AS m, pragma_table_xinfo(m.name) AS c WHERE m.type = 'table'"""


class Schema:
    """The tables, indexes, triggers and versions of one database."""

    def __init__(
        self,
        declarations: Mapping[str, str],
        indexes: Mapping[str, str],
        triggers: Mapping[str, str],
        virtual: Mapping[str, str],
        version: int | None,
        application_id: int,
        user_version: int,
        views: Mapping[str, str],
    ) -> None:
        self.declarations = declarations
        """The SQL of each ordinary table."""
        self.indexes = indexes
        """The SQL of each index; empty for those that SQLite creates by itself."""
        self.triggers = triggers
        self.virtual = virtual
        self.views = views
        self.version = version
        """The highest number in its table `schema_version`, if it has one."""
        self.application_id = application_id
        self.user_version = user_version

    @cached_property
    def tables(self) -> Mapping[str, Mapping[str, Column]]:
        """The columns of each ordinary table by name, in their stored order.

        Parsed on first use, because usually comparing the text of the declarations is enough.
        """
        return _declared(self.declarations)


def read(path: Path) -> Schema:
    """Read the schema of the database at `path`; repeat if it changes during the read."""
    end = time.monotonic() + time_limits.stretch(PATIENCE)
    while True:
        before = _mark(path)
        try:
            found = _once(path)
        except CouldNotLook:
            if _mark(path) == before or time.monotonic() > end:
                raise
        else:
            if _mark(path).head == before.head or time.monotonic() > end:
                return found
        time.sleep(0.01)


def table_names(main: int, log: Path) -> set[str]:
    """The tables of an open database, with the log at this path if there is one."""
    with ExitStack() as files:
        fd = None
        with suppress(OSError):
            fd = open_regular(log)
            files.callback(os.close, fd)
        book = pages.DatabasePages(main, fd)
        rows = table_rows.rows(book, 1, max_pages=MOST_PAGES)
        return {str(row[1]) for row in rows if len(row) > 1 and row[0] == "table"}


class _Mark(NamedTuple):
    """What changes when a database is written; `head` changes only when its log is restarted."""

    head: bytes
    main: Snapshot
    log: Snapshot


def _mark(path: Path) -> _Mark:
    log = path.with_name(path.name + "-wal")
    head = b""
    with suppress(FileNotFoundError, CouldNotLook):
        head = read_head(log, wal.HEAD)[0]
    return _Mark(head, snapshot(path), snapshot(log))


def _once(path: Path) -> Schema:
    parts: dict[str, dict[str, str]] = {"table": {}, "index": {}, "trigger": {}, "view": {}}
    version_root = 0
    with pages.open_pages(path) as book:
        first = book.read(1)
        for row in table_rows.rows(book, 1, max_pages=MOST_PAGES):
            if len(row) < 5 or not isinstance(row[1], str):
                raise CouldNotLook(text("{path}: a row of its schema is damaged", path=path.name))
            kind, name, root, sql = row[0], row[1], row[3], row[4]
            if kind in parts and isinstance(kind, str):
                parts[kind][name] = sql if isinstance(sql, str) else ""
            if (kind, name) == ("table", "schema_version") and isinstance(root, int):
                version_root = root
        version = _version(book, version_root) if version_root else None
    virtual = {name: sql for name, sql in parts["table"].items() if _creates(sql, "VIRTUAL TABLE")}
    shadows = {name + suffix for name in virtual for suffix in _SHADOWS}
    return Schema(
        declarations={
            name: sql
            for name, sql in parts["table"].items()
            if _creates(sql, "TABLE") and name not in shadows and not name.startswith("sqlite_")
        },
        indexes=parts["index"],
        triggers=parts["trigger"],
        virtual=virtual,
        views=parts["view"],
        version=version,
        application_id=int.from_bytes(first[_APPLICATION_ID : _APPLICATION_ID + 4], "big"),
        user_version=int.from_bytes(first[_USER_VERSION : _USER_VERSION + 4], "big"),
    )


def _creates(sql: str, what: str) -> bool:
    """Whether the statement creates such an object; a damaged file may contain any other."""
    return sql[: len(what) + 8].upper() == f"CREATE {what} "


def _version(book: pages.DatabasePages, root: int) -> int | None:
    """The number in `schema_version`; None if it is damaged or not a number."""
    with suppress(CouldNotLook):
        found = [row[0] for row in table_rows.rows(book, root, max_pages=2) if row]
        return max((number for number in found if isinstance(number, int)), default=None)
    return None


def _declared(tables: Mapping[str, str]) -> dict[str, dict[str, Column]]:
    """The columns that each CREATE TABLE declares; SQLite parses it in memory."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    found: dict[str, dict[str, Column]] = {name: {} for name in tables}
    try:
        memory.execute("BEGIN")
        memory.set_authorizer(declares_only)
        for sql in tables.values():
            memory.execute(sql)
        memory.set_authorizer(None)
        for table, name, kind, must, default, key in memory.execute(_COLUMNS):
            if table in found:
                found[table][name] = Column(name, kind, bool(must), default, key)
    except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
        raise CouldNotLook("could not read the declaration of a table") from error
    finally:
        memory.close()
    return {table: columns for table, columns in found.items() if columns}


def declares_only(action: int, *_: object) -> int:
    """An authorizer for declarations that denies CREATE TABLE … AS SELECT, which runs a query."""
    return sqlite3.SQLITE_DENY if action in (sqlite3.SQLITE_SELECT, 33) else sqlite3.SQLITE_OK
