"""Read `sqlite_master` and classify each object: rows, an index, or full-text search data."""

from __future__ import annotations

import re

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import table_rows
from hermes_doctor.sqlite.pages import DatabasePages

MOST_PAGES = 2000
SHADOWS = ("data", "idx", "content", "docsize", "config")
HERMES_FULLTEXT = {"messages_fts": "messages", "messages_fts_trigram": "messages"}
"""Hermes' own full-text tables, and the table whose rows triggers copy into each of them."""
FTS = pattern(r"\s*CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+fts5\b", re.IGNORECASE | re.DOTALL)


class SchemaRow(NamedTuple):
    """One row of `sqlite_master`."""

    kind: str
    name: str
    table: str
    root: int
    sql: str


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

    def is_virtual(self, name: str) -> bool:
        """Whether a table has no pages of its own."""
        sql = next(row.sql for row in self.entries if row.kind == "table" and row.name == name)
        return "virtual" in sql.lower()[:16]

    @property
    def roots(self) -> tuple[tuple[int, bool], ...]:
        """The root page of each b-tree, and whether it is keyed by rowid."""
        return tuple(
            (entry.root, entry.kind == "table" and "WITHOUT ROWID" not in entry.sql.upper())
            for entry in self.entries
            if entry.root
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


def read(pages: DatabasePages) -> Catalog:
    """Read as much of the schema as possible; damage sets `damaged` and never raises."""
    entries: list[SchemaRow] = []
    damaged = False
    try:
        for row in table_rows.rows(pages, 1, max_pages=MOST_PAGES):
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
