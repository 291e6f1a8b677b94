"""Read the schema of a database without opening it with SQLite, and classify its parts.

A `Schema` is compared with what a release declares. A `Catalog` is what can be read of a database
that may be damaged; it says whether a part has rows, or can be rebuilt.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.core.system.files import Snapshot, open_regular, read_head, snapshot
from hermes_doctor.sqlite import pages, wal
from hermes_doctor.sqlite.blueprint import Column
from hermes_doctor.sqlite.pages import DatabasePages

_STRING = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]"
_ARGUMENT = pattern(rf"(?P<name>\w+)\s*=\s*(?P<value>{_STRING}|\w+)|{_STRING}")
_START = pattern(r"\bUSING\s+fts5\b", re.IGNORECASE)
_BUILT_IN = frozenset({"unicode61", "ascii", "porter", "trigram"})
"""The tokenizers that every SQLite with FTS5 has."""


def options(sql: str) -> dict[str, str]:
    """The options of a CREATE VIRTUAL TABLE … USING fts5 statement, unquoted."""
    start = _START.search(sql)
    values: dict[str, str] = {}
    for argument in _ARGUMENT.finditer(sql, start.end() if start else 0):
        if argument["name"]:
            values.setdefault(argument["name"].lower(), _bare(argument["value"]))
    return values


def foreign_tokenizer(sql: str) -> str | None:
    """The tokenizer of a full-text table if an extension has to provide it."""
    words = [word.strip("'\"").lower() for word in options(sql).get("tokenize", "").split()]
    if words[:1] == ["porter"]:  # it wraps another tokenizer
        words = words[1:]
    return words[0] if words and words[0] not in _BUILT_IN else None


def _bare(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"', "`") and len(value) > 1:
        return value[1:-1].replace(quote * 2, quote)
    return value[1:-1] if quote == "[" else value


SHADOWS = ("data", "idx", "content", "docsize", "config")
HERMES_FULLTEXT = {"messages_fts": "messages", "messages_fts_trigram": "messages"}
"""Hermes' own full-text tables, and the table whose rows triggers copy into each of them."""
META = "state_meta"
HIGH_WATER, PROGRESS = "fts_rebuild_high_water", "fts_rebuild_progress"
"""The table in which Hermes notes a rebuild of its search index, and the two keys."""
_PLAIN_DATA = "data"
for _word in ("-Infinity", "Infinity", "NaN"):  # Python reads and writes these, SQLite does not
    _PLAIN_DATA = f"replace({_PLAIN_DATA}, '{_word}', '0')"
UNREADABLE_RESPONSES = (
    f"NOT CASE typeof(data) WHEN 'text' THEN json_valid({_PLAIN_DATA}) ELSE 0 END"
)
"""The condition for rows of `responses`, the cache of the API server, whose data is not JSON."""
DANGLING_CONVERSATIONS = (
    "NOT EXISTS (SELECT 1 FROM responses WHERE responses.response_id = conversations.response_id)"
)
"""The condition for rows of `conversations` whose last response is missing."""
FTS = pattern(r"\s*CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+fts5\b", re.IGNORECASE | re.DOTALL)


class SchemaRow(NamedTuple):
    """One row of `sqlite_master`."""

    kind: str
    name: str
    table: str
    root: int
    sql: str

    @property
    def has_rowids(self) -> bool:
        """Whether it is a table whose b-tree is keyed by rowid."""
        return self.kind == "table" and "WITHOUT ROWID" not in self.sql.upper()


class Catalog(NamedTuple):
    """The schema of one database, as far as it could be read."""

    entries: tuple[SchemaRow, ...]
    damaged: bool = False
    """Some rows of the schema could not be read."""

    @property
    def tables(self) -> frozenset[str]:
        """The names of its tables."""
        return frozenset(entry.name for entry in self.entries if entry.kind == "table")

    @property
    def searches(self) -> tuple[str, ...]:
        """Its full-text tables."""
        return tuple(
            entry.name for entry in self.entries if entry.kind == "table" and FTS.match(entry.sql)
        )

    def sql_of(self, kind: str, name: str) -> str:
        """The declaration of a part of the schema; empty if it has no such part."""
        return next((e.sql for e in self.entries if (e.kind, e.name) == (kind, name)), "")

    @property
    def trees(self) -> tuple[tuple[str, int, bool], ...]:
        """Each b-tree: its name, its root page, and whether it is keyed by rowid."""
        return tuple(
            (entry.name, entry.root, entry.has_rowids) for entry in self.entries if entry.root
        )

    def worth(self, name: str) -> str:
        """What is affected when this object is damaged: `rows`, `index` or `search`."""
        if any(entry.kind == "index" and entry.name == name for entry in self.entries):
            # An index of a shadow table belongs to its full-text table.
            owner = next(e.table for e in self.entries if e.kind == "index" and e.name == name)
            return "search" if self.worth(owner) == "search" else "index"
        search = self.search_of(name)
        if search is None or (name == f"{search}_content" and search not in HERMES_FULLTEXT):
            return "rows"  # a full-text table that is not Hermes' has the only copy of its text
        return "search"

    def search_of(self, name: str) -> str | None:
        """The full-text table that an object belongs to."""
        for search in sorted(self.searches, key=len, reverse=True):
            if name == search or name in (f"{search}_{shadow}" for shadow in SHADOWS):
                return search
        return None


def read_catalog(pages: DatabasePages) -> Catalog:
    """Read as much of the schema as possible; damage sets `damaged` and never raises."""
    entries: list[SchemaRow] = []
    damaged = False
    try:
        for row in pages.rows(1):
            kind, name, table, root, sql = (*row, None, None, None, None, None)[:5]
            if not (isinstance(kind, str) and isinstance(name, str) and isinstance(table, str)):
                damaged = True
                continue
            number = root if isinstance(root, int) else 0
            entries.append(
                SchemaRow(kind, name, table, number, sql if isinstance(sql, str) else "")
            )
    except CouldNotLook:
        damaged = True
    return Catalog(tuple(entries), damaged)


PATIENCE = 1.0
"""Seconds for repeated reading while another process writes."""
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
        self.triggers, self.virtual, self.views = triggers, virtual, views
        self.version = version
        """The highest number in its table `schema_version`, if it has one."""
        self.application_id, self.user_version = application_id, user_version

    @cached_property
    def tables(self) -> Mapping[str, Mapping[str, Column]]:
        """The columns of each ordinary table by name, in their stored order.

        Parsed on first use, because usually comparing the text of the declarations is enough.
        """
        return _declared(self.declarations)


def read(path: Path) -> Schema:
    """Read the schema of the database at `path`; repeat if it changes during the read."""
    end = time.monotonic() + limits.stretch(PATIENCE)
    while True:
        before = _mark(path)
        try:
            schema = _once(path)
        except CouldNotLook:
            if _mark(path) == before or time.monotonic() > end:
                raise
        else:
            if _mark(path).head == before.head or time.monotonic() > end:
                return schema
        time.sleep(0.01)


def table_names(main: int, log: Path) -> set[str]:
    """The tables of an open database, with the log at this path if there is one."""
    with ExitStack() as files:
        fd = None
        with suppress(OSError):
            fd = open_regular(log)
            files.callback(os.close, fd)
        rows = pages.pages_of(main, fd).rows(1)
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
        head = read_head(log, wal.LOG_HEAD)[0]
    return _Mark(head, snapshot(path), snapshot(log))


def _once(path: Path) -> Schema:
    parts: dict[str, dict[str, str]] = {"table": {}, "index": {}, "trigger": {}, "view": {}}
    version_root = 0
    with pages.open_pages(path) as book:
        first = book.read(1)
        for row in book.rows(1):
            if len(row) < 5 or not isinstance(row[1], str):
                raise CouldNotLook("{path}: a row of its schema is damaged", path=path.name)
            kind, name, root, sql = row[0], row[1], row[3], row[4]
            if kind in parts and isinstance(kind, str):
                parts[kind][name] = sql if isinstance(sql, str) else ""
            if (kind, name) == ("table", "schema_version") and isinstance(root, int):
                version_root = root
        version = _version(book, version_root) if version_root else None
    virtual = {name: sql for name, sql in parts["table"].items() if _creates(sql, "VIRTUAL TABLE")}
    shadows = {f"{name}_{part}" for name in virtual for part in SHADOWS}
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
        versions = [row[0] for row in book.rows(root, max_pages=2) if row]
        return max((number for number in versions if isinstance(number, int)), default=None)
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
