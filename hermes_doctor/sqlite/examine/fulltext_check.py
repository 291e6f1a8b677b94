"""Check full-text tables for damage that `integrity_check` does not find, and for missing rows.

Up to SQLite 3.43 `integrity_check` does not check FTS5 tables at all. FTS5's own check is an
INSERT, and this tool does not write to a database that it examines. Reading is enough to find what
breaks a gateway: a table that cannot be opened, a damaged structure record, missing segments, and
rows that are not in the index.

Which rows belong into an index, the file itself declares. Up to Hermes 0.19.0 a full-text table
keeps its own copy of the text, and triggers add every message. Later releases name a table or view
that has the text (`content='…'`). While Hermes rebuilds an index step by step, two keys in
`state_meta` record the progress, and the triggers in the file use them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.pages import PARSE_ERRORS, varint
from hermes_doctor.sqlite.reader import UNFINISHED, Reader
from hermes_doctor.sqlite.schema import (
    FTS,
    HERMES_FULLTEXT,
    HIGH_WATER,
    META,
    PROGRESS,
    SHADOWS,
    Catalog,
    foreign_tokenizer,
    options,
)

SOME = 1000
"""Rows at each end of a table that a quick examination reads."""
STRUCTURE = 10
"""The id of the row in the data table that lists the segments."""
MOST = 2000
"""FTS5's own limit for levels and for segments."""
_CANNOT_OPEN = pattern("vtable constructor failed|invalid fts5 file format")
_CONDITIONAL = pattern(
    r"\bAFTER\s+INSERT\s+ON\s+\S+\s+(?:FOR\s+EACH\s+ROW\s+)?WHEN\b", re.IGNORECASE
)
Segment = tuple[int, int, int]
"""The number of a segment, its first and its last page."""


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


class FulltextCheck:
    """Checks the full-text tables of one database; unless `whole`, only the ends of each table.

    `seconds` is the limit for one query.
    """

    def __init__(
        self, reader: Reader, catalog: Catalog, seconds: float | None, *, whole: bool
    ) -> None:
        self.reader = reader
        self.catalog = catalog
        self.seconds = seconds
        self.whole = whole
        self.rebuild = self._unfinished_rebuild()

    def flaws(self) -> Iterator[FulltextFlaw | Unchecked]:
        """Yield the flaws of all tables, and which could not be checked."""
        for table in self.catalog.searches:
            if tokenizer := foreign_tokenizer(self.catalog.sql_of("table", table)):
                what = f"this SQLite does not have its tokenizer {shown([tokenizer])}"
                yield Unchecked(table, what)
                continue
            gone = [shadow for shadow in SHADOWS if not self._has(table, shadow)]
            if gone:
                lost = "content" in gone and table not in HERMES_FULLTEXT
                behind = shown([f"{table}_{gone[0]}"])
                yield FulltextFlaw(table, f"its table {behind} is missing", "writes", lost=lost)
                continue
            flaw: FulltextFlaw | Unchecked | None
            flaw = self.structure(table) or self._search(table) or self.compare_with_source(table)
            if flaw is not None:
                yield flaw

    def _has(self, table: str, shadow: str) -> bool:
        if f"{table}_{shadow}" in self.catalog.tables:
            return True
        # A table with external content, or without sizes, has no such shadow table by design.
        absent = {"content": "content", "docsize": "columnsize"}.get(shadow)
        return absent is not None and absent in options(self.catalog.sql_of("table", table))

    def _search(self, table: str) -> FulltextFlaw | None:
        """Search for a nonsense word, which reads the structure and the top of the index."""
        name = quote_name(table)
        sql = f"SELECT rowid FROM {name} WHERE {name} MATCH 'zqxjzqxj' LIMIT 1"
        answer = self.reader.ask(sql, self.seconds)
        if answer.error == "SQLITE_ERROR" and _CANNOT_OPEN.search(answer.said):
            return FulltextFlaw(table, "SQLite cannot open it", "writes")
        if answer.damaged or answer.error == "SQLITE_CONSTRAINT":
            return FulltextFlaw(table, "a search in it fails", "search")
        return None

    def structure(self, table: str) -> FulltextFlaw | None:
        """Check that the structure record exists, is valid, and lists only existing segments."""
        data = quote_name(f"{table}_data")
        sql = f"SELECT hex(block) FROM {data} WHERE id = {STRUCTURE}"
        answer = self.reader.ask(sql, self.seconds)
        if answer.error:
            return None  # the tree itself is damaged, or there was no time
        if not answer.rows:
            return FulltextFlaw(table, "its structure record is missing", "writes")
        try:
            segments = segments_of(bytes.fromhex(answer.rows[0][0]))
        except (CouldNotLook, *PARSE_ERRORS):
            return FulltextFlaw(table, "its structure record is damaged", "writes")
        if not self.whole and self.have_ends(table, segments):
            return None
        for segment in segments:
            if missing := self._missing_pages(data, segment):
                noun = "page of its index is" if missing == 1 else "pages of its index are"
                return FulltextFlaw(table, f"{missing} {noun} gone", "search")
            if self._lacks_terms(table, segment):
                return FulltextFlaw(table, "its index of terms has lost entries", "search")
        return None

    def have_ends(self, table: str, segments: list[Segment]) -> bool:
        """Whether all segments have their first and last page, and entries in the index of terms.

        Only if not, each segment is checked by itself: a used search index has dozens of them.
        """
        data, index = quote_name(f"{table}_data"), quote_name(f"{table}_idx")
        numbers = {number for number, _, _ in segments}
        ends = {(number << 37) + page for number, first, last in segments for page in (first, last)}
        for sql, count in (
            (f"SELECT count(*) FROM {data} WHERE id IN ({_joined(ends)})", len(ends)),
            (
                f"SELECT count(DISTINCT segid) FROM {index} WHERE segid IN ({_joined(numbers)})",
                len(numbers),
            ),
        ):
            answer = self.reader.ask(sql, self.seconds)
            if answer.error or answer.rows != [[count]]:
                return False
        return True

    def _missing_pages(self, data: str, segment: Segment) -> int:
        """How many pages of a segment are missing."""
        number, first, last = segment
        low, high = (number << 37) + first, (number << 37) + last
        condition, wanted = f"id IN ({low}, {high})", len({low, high})
        if self.whole:
            condition, wanted = f"id BETWEEN {low} AND {high}", last - first + 1
        sql = f"SELECT count(*) FROM {data} WHERE {condition}"
        answer = self.reader.ask(sql, self.seconds)
        return 0 if answer.error or not answer.rows else max(0, wanted - int(answer.rows[0][0]))

    def _lacks_terms(self, table: str, segment: Segment) -> bool:
        """Whether a page on which a term starts is not in the index of terms."""
        number, first, last = segment
        data, index = quote_name(f"{table}_data"), quote_name(f"{table}_idx")
        known = self._count(f"SELECT count(*) FROM {index} WHERE segid = {number}")
        low = (number << 37) + first
        high = (number << 37) + last if self.whole else low  # a segment always starts with a term
        wanted = self._count(
            f"SELECT count(*) FROM {data} WHERE id BETWEEN {low} AND {high} "
            "AND hex(substr(block, 3, 2)) <> printf('%04X', length(block))"
        )
        # A merge in progress may have moved the start of a segment by one page.
        return known + 1 < wanted or bool(wanted and not known)

    def _count(self, sql: str) -> int:
        answer = self.reader.ask(sql, self.seconds)
        return int(answer.rows[0][0]) if answer.rows else 0

    def _unfinished_rebuild(self) -> Rebuild | None:
        """Return the rebuild that Hermes has started and not finished."""
        if META not in self.catalog.tables:
            return None
        sql = (
            f"SELECT key, CAST(value AS INTEGER) FROM {META} "
            f"WHERE key IN ('{HIGH_WATER}', '{PROGRESS}')"
        )
        values = {row[0]: row[1] for row in self.reader.ask(sql, self.seconds, [META]).rows}
        if HIGH_WATER not in values:
            return None
        triggers = [entry.sql for entry in self.catalog.entries if entry.kind == "trigger"]
        declared = any(HIGH_WATER in sql and PROGRESS in sql for sql in triggers)
        progress = values.get(PROGRESS)
        number = None if progress is None else int(progress)
        return Rebuild(int(values[HIGH_WATER]), number, declared)

    def compare_with_source(self, table: str) -> FulltextFlaw | Unchecked | None:
        """Find rows that the index should have and lacks, or has and should not have."""
        source = self._source_of(table)
        if source is None or isinstance(source, Unchecked):
            return source
        rebuild = self.rebuild
        if rebuild and (rebuild.progress is None or not rebuild.declared):
            return Unchecked(table, "Hermes has not finished rebuilding it")
        comparison = _Comparison(self, table, source)
        condition = "1"
        if rebuild:
            condition = f"{quote_name(source.key)} <= {rebuild.progress}"
            gap = f"id > {rebuild.progress} AND id <= {rebuild.high_water}"
            early = comparison.count(f"SELECT count(*) FROM {comparison.sizes} WHERE {gap}")
            if early:
                what = f"it already contains {early} rows that Hermes would index a second time"
                return FulltextFlaw(table, what, "later")
        rows, sizes = (comparison.rows, source.key), (comparison.sizes, "id")
        unknown = comparison.count_without(rows, sizes, condition)
        stray = comparison.count_without(sizes, rows, "1")
        if comparison.refused == UNFINISHED:
            return Unchecked(table, "there was no time to compare it with what it indexes")
        if comparison.refused:
            what = f"SQLite could not evaluate what it indexes ({comparison.refused})"
            return Unchecked(table, what)
        if unknown:
            what = f"{unknown} rows of {source.name} are missing from it"
            return FulltextFlaw(table, what, "some", unknown)
        if stray:
            what = f"it contains {stray} rows that {source.name} no longer has"
            return FulltextFlaw(table, what, "some")
        return None

    def _source_of(self, table: str) -> IndexedText | Unchecked | None:
        """Return what one of Hermes' own indexes covers; None for any other index."""
        if table not in HERMES_FULLTEXT:
            return None
        catalog, declared = self.catalog, options(self.catalog.sql_of("table", table))
        if "content" not in declared:
            source, fills = HERMES_FULLTEXT[table], f"into{table}(".lower()
            if source not in catalog.tables:
                return None
            for entry in catalog.entries:
                words = "".join(entry.sql.lower().replace('"', "").split())
                if entry.kind == "trigger" and _CONDITIONAL.search(entry.sql) and fills in words:
                    return Unchecked(table, "its triggers leave out rows")
            return IndexedText(source, "id", view=False)
        name, key = declared["content"], declared.get("content_rowid", "rowid")
        if name in catalog.tables and not FTS.match(catalog.sql_of("table", name)):
            return IndexedText(name, key, view=False)
        if catalog.sql_of("view", name):
            return IndexedText(name, key, view=True)
        return Unchecked(table, "what it indexes is missing") if name else None


class IndexedText(NamedTuple):
    """The table or view that has the text of a full-text table."""

    name: str
    key: str
    view: bool


class _Comparison:
    """Compares a full-text table with its source."""

    def __init__(self, check: FulltextCheck, table: str, source: IndexedText) -> None:
        self.check = check
        self.sizes = quote_name(f"{table}_docsize")
        self.rows = quote_name(source.name)
        self.is_view = source.view
        self.refused: str | None = None
        """SQLite's error name if a view could not be evaluated."""
        entries = check.catalog.entries
        ordinary = (e.name for e in entries if e.kind == "table" and not FTS.match(e.sql))
        self.tables = [source.name, *ordinary] if source.view else None
        """The tables a statement may read; None for no restriction, if no view is evaluated."""

    def count_without(self, one: tuple[str, str], other: tuple[str, str], condition: str) -> int:
        """How many rows of one are not in the other; an ordinary index must not be used."""
        (here, key), (there, partner) = one, other
        key, partner = quote_name(key), quote_name(partner)
        hint = "" if self.is_view else " NOT INDEXED"
        parts = [f"{here}{hint}"]
        if not self.check.whole:
            parts = [
                f"(SELECT {key} FROM {here} ORDER BY {key} {way} LIMIT {SOME})"
                for way in ("", "DESC")
            ]
        lacks = f"{key} NOT IN (SELECT {partner} FROM {there}{hint})"
        if self.is_view:  # SQLite looks up each row of a view by its key
            lacks = f"NOT EXISTS (SELECT 1 FROM {there} AS t WHERE t.{partner} = o.{key})"
            parts = [f"{part} AS o" for part in parts]
        return max(
            self.count(f"SELECT count(*) FROM {part} WHERE ({condition}) AND {lacks}")
            for part in parts
        )

    def count(self, sql: str) -> int:
        answer = self.check.reader.ask(sql, self.check.seconds, self.tables)
        if answer.unfinished or (self.tables is not None and answer.error):
            self.refused = answer.error
        return int(answer.rows[0][0]) if answer.rows else 0


def _joined(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def segments_of(record: bytes) -> list[Segment]:
    """The segments of a structure record: number, first page, last page."""
    at = 4
    if record[4:8] == b"\xff\x00\x00\x01":  # the newer format, of tables with tombstones
        at = 8
    second = at == 8
    levels, at = varint(record, at)
    total, at = varint(record, at)
    _, at = varint(record, at)  # the write counter
    if levels > MOST or total > MOST:
        raise CouldNotLook("its search index names too many segments")
    segments: list[Segment] = []
    for _ in range(levels):
        _, at = varint(record, at)
        count, at = varint(record, at)
        if count > total:
            raise CouldNotLook("a level of its search index has too many segments")
        for _ in range(count):
            number, at = varint(record, at)
            first, at = varint(record, at)
            last, at = varint(record, at)
            for _ in range(5 if second else 0):
                _, at = varint(record, at)
            if not 0 < number < 65536 or first > last:
                raise CouldNotLook("a segment of its search index is not valid")
            segments.append((number, first, last))
    if len(segments) != total:
        raise CouldNotLook("segments of its search index are missing")
    return [segment for segment in segments if segment[2]]  # a merged segment has no pages


def passes_own_check(reader: Reader, table: str) -> bool:
    """Run FTS5's own check of a table; it writes, so use it only on an in-memory image."""
    name = quote_name(table)
    answer = reader.ask(f"INSERT INTO {name}({name}) VALUES ('integrity-check')")
    return answer.error != "SQLITE_CORRUPT_VTAB"


def differs_by_release(reader: Reader, catalog: Catalog, table: str) -> bool:
    """Whether a table may differ from its rows only because SQLite versions differ.

    The trigram tokenizer reads past a NUL up to SQLite 3.47 and stops there from 3.48 on. Hermes
    stores messages with images and other parts as text that starts with a NUL.
    """
    source = HERMES_FULLTEXT.get(table)
    if source is None or "trigram" not in catalog.sql_of("table", table).lower():
        return False
    odd = f"SELECT 1 FROM {quote_name(source)} WHERE instr(CAST(content AS BLOB), x'00') LIMIT 1"
    return bool(reader.ask(odd).rows)
