"""Compare a full-text table with the rows that it should index, as the file declares them.

Up to Hermes 0.19.0 a full-text table keeps its own copy of the text, and triggers add every
message. Later releases name a table or view that has the text (`content='…'`), which decides which
rows belong into the index. While Hermes rebuilds an index step by step, two keys in `state_meta`
record the progress, and the triggers in the file use them.
"""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.reader import UNFINISHED, Reader
from hermes_doctor.sqlite.schema import (
    FTS,
    HERMES_FULLTEXT,
    HIGH_WATER,
    META,
    PROGRESS,
    Catalog,
    options,
)

SOME = 1000
"""Rows at each end of a table that a quick examination reads."""
_CONDITIONAL = pattern(
    r"\bAFTER\s+INSERT\s+ON\s+\S+\s+(?:FOR\s+EACH\s+ROW\s+)?WHEN\b", re.IGNORECASE
)


class FulltextFlaw(NamedTuple):
    """One thing that is wrong with a full-text table."""

    table: str
    what: str
    breaks: str
    """What no longer works: writes, search, some or later."""
    missing: int = 0
    lost: bool = False
    """It had the only copy of its text, and that is lost."""


class Unchecked(NamedTuple):
    """A full-text table that could not be checked, and why."""

    table: str
    why: str


class Rebuild(NamedTuple):
    """A rebuild of the search index that Hermes has not finished."""

    high_water: int
    """The newest message when the rebuild started; newer ones are indexed when written."""
    progress: int | None
    """Older messages are indexed again up to this one; None if that is not recorded."""
    declared: bool
    """The triggers in the file use both numbers."""


class IndexedText(NamedTuple):
    """The table or view that has the text of a full-text table."""

    name: str
    key: str
    view: bool


def rebuild_of(reader: Reader, catalog: Catalog, seconds: float | None) -> Rebuild | None:
    """Return the rebuild that Hermes has started and not finished."""
    if META not in catalog.tables:
        return None
    answer = reader.ask(
        f"SELECT key, CAST(value AS INTEGER) FROM {META} WHERE key IN ('{HIGH_WATER}', "
        f"'{PROGRESS}')",
        seconds,
        [META],
    )
    values = {row[0]: row[1] for row in answer.rows}
    if HIGH_WATER not in values:
        return None
    triggers = [entry.sql for entry in catalog.entries if entry.kind == "trigger"]
    declared = any(HIGH_WATER in sql and PROGRESS in sql for sql in triggers)
    progress = values.get(PROGRESS)
    return Rebuild(int(values[HIGH_WATER]), None if progress is None else int(progress), declared)


def source_of(catalog: Catalog, table: str) -> IndexedText | Unchecked | None:
    """Return what one of Hermes' own indexes covers; None for any other index."""
    if table not in HERMES_FULLTEXT:
        return None
    declared = options(catalog.sql_of("table", table))
    if "content" not in declared:
        source = HERMES_FULLTEXT[table]
        if source not in catalog.tables:
            return None
        if _conditional(catalog, table):
            return Unchecked(table, "its triggers leave out rows")
        return IndexedText(source, "id", view=False)
    name, key = declared["content"], declared.get("content_rowid", "rowid")
    if name in catalog.tables and not FTS.match(catalog.sql_of("table", name)):
        return IndexedText(name, key, view=False)
    if catalog.sql_of("view", name):
        return IndexedText(name, key, view=True)
    return Unchecked(table, "what it indexes is missing") if name else None


def compare_with_source(
    reader: Reader,
    catalog: Catalog,
    table: str,
    rebuild: Rebuild | None,
    *,
    seconds: float | None,
    whole: bool,
) -> FulltextFlaw | Unchecked | None:
    """Find rows that the index should have and lacks, or has and should not have."""
    source = source_of(catalog, table)
    if source is None or isinstance(source, Unchecked):
        return source
    if rebuild and (rebuild.progress is None or not rebuild.declared):
        return Unchecked(table, "Hermes has not finished rebuilding it")
    comparison = _Compared(reader, catalog, table, source, seconds, whole)
    if rebuild:
        early = comparison.count(f"SELECT count(*) FROM {comparison.sizes} WHERE {_gap(rebuild)}")
        if early:
            what = f"it already contains {early} rows that Hermes would index a second time"
            return FulltextFlaw(table, what, "later")
    unknown = comparison.unknown(
        f"{quote_name(source.key)} <= {rebuild.progress}" if rebuild else "1"
    )
    stray = comparison.stray()
    if comparison.refused == UNFINISHED:
        return Unchecked(table, "there was no time to compare it with what it indexes")
    if comparison.refused:
        return Unchecked(table, f"SQLite could not evaluate what it indexes ({comparison.refused})")
    if unknown:
        return FulltextFlaw(
            table, f"{unknown} rows of {source.name} are missing from it", "some", unknown
        )
    if stray:
        return FulltextFlaw(
            table, f"it contains {stray} rows that {source.name} no longer has", "some"
        )
    return None


def _gap(rebuild: Rebuild) -> str:
    return f"id > {rebuild.progress} AND id <= {rebuild.high_water}"


class _Compared:
    """Compares a full-text table with its source."""

    def __init__(
        self,
        reader: Reader,
        catalog: Catalog,
        table: str,
        source: IndexedText,
        seconds: float | None,
        whole: bool,
    ) -> None:
        self.reader = reader
        self.sizes = quote_name(f"{table}_docsize")
        self.rows = quote_name(source.name)
        self.source = source
        self.seconds = seconds
        self.whole = whole
        self.refused: str | None = None
        """SQLite's error name if a view could not be evaluated."""
        ordinary = (e.name for e in catalog.entries if e.kind == "table" and not FTS.match(e.sql))
        self.tables = [source.name, *ordinary] if source.view else None
        """The tables a statement may read; None for no restriction, if no view is evaluated."""

    def unknown(self, condition: str) -> int:
        """How many rows of the source are missing from the index."""
        return self.without((self.rows, self.source.key), (self.sizes, "id"), condition)

    def stray(self) -> int:
        """How many rows of the index its source does not have."""
        return self.without((self.sizes, "id"), (self.rows, self.source.key), "1")

    def without(self, one: tuple[str, str], other: tuple[str, str], condition: str) -> int:
        """How many rows of one are not in the other; an ordinary index must not be used."""
        (here, key), (there, partner) = (
            (one[0], quote_name(one[1])),
            (other[0], quote_name(other[1])),
        )
        hint = "" if self.source.view else " NOT INDEXED"
        parts = [f"{here}{hint}"]
        if not self.whole:
            parts = [
                f"(SELECT {key} FROM {here} ORDER BY {key} {way} LIMIT {SOME})"
                for way in ("", "DESC")
            ]
        lacks = f"{key} NOT IN (SELECT {partner} FROM {there}{hint})"
        if self.source.view:  # SQLite looks up each row of a view by its key
            lacks = f"NOT EXISTS (SELECT 1 FROM {there} AS t WHERE t.{partner} = o.{key})"
            parts = [f"{part} AS o" for part in parts]
        return max(
            self.count(f"SELECT count(*) FROM {part} WHERE ({condition}) AND {lacks}")
            for part in parts
        )

    def count(self, sql: str) -> int:
        answer = self.reader.ask(sql, self.seconds, self.tables)
        if answer.unfinished or (self.tables is not None and answer.error):
            self.refused = answer.error
        return int(answer.rows[0][0]) if answer.rows else 0


def _conditional(catalog: Catalog, table: str) -> bool:
    """Whether a trigger that fills the index skips some rows."""
    fills = f"into{table}(".lower()
    return any(
        entry.kind == "trigger"
        and _CONDITIONAL.search(entry.sql)
        and fills in "".join(entry.sql.lower().replace('"', "").split())
        for entry in catalog.entries
    )
