"""Check full-text tables for damage that `integrity_check` does not find.

Up to SQLite 3.43 `integrity_check` does not check FTS5 tables at all. FTS5's own check is an
INSERT, and this tool does not write to a database that it examines. Reading is enough to find what
breaks a gateway: a table that cannot be opened, a damaged structure record, missing segments, and
rows that are not in the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import shown
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.examine import fulltext_coverage
from hermes_doctor.sqlite.examine.fulltext_coverage import FulltextFlaw, Rebuild, Unchecked
from hermes_doctor.sqlite.pages import PARSE_ERRORS, varint
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.schema import (
    HERMES_FULLTEXT,
    SHADOWS,
    Catalog,
    foreign_tokenizer,
    options,
)

_CANNOT_OPEN = pattern("vtable constructor failed|invalid fts5 file format")
STRUCTURE = 10
"""The id of the row in the data table that lists the segments."""
MOST = 2000
"""FTS5's own limit for levels and for segments."""


def check_all(
    reader: Reader, catalog: Catalog, *, seconds: float | None, whole: bool
) -> tuple[Rebuild | None, tuple[FulltextFlaw, ...], tuple[Unchecked, ...]]:
    """Check all full-text tables: Hermes' unfinished rebuild, flaws, and what was not checked."""
    rebuild = fulltext_coverage.rebuild_of(reader, catalog, seconds)
    results = list(flaws(reader, catalog, rebuild, seconds=seconds, whole=whole))
    wrong = tuple(result for result in results if isinstance(result, FulltextFlaw))
    return rebuild, wrong, tuple(result for result in results if isinstance(result, Unchecked))


def openable_tables(catalog: Catalog) -> list[str]:
    """The full-text tables that every SQLite can open."""
    return [
        name for name in catalog.searches if not foreign_tokenizer(catalog.sql_of("table", name))
    ]


def flaws(
    reader: Reader,
    catalog: Catalog,
    rebuild: Rebuild | None,
    *,
    seconds: float | None,
    whole: bool,
) -> Iterator[FulltextFlaw | Unchecked]:
    """Yield the flaws of all tables; unless `whole`, only both ends of a table are read."""
    for table in catalog.searches:
        if tokenizer := foreign_tokenizer(catalog.sql_of("table", table)):
            yield Unchecked(table, f"this SQLite does not have its tokenizer {shown([tokenizer])}")
            continue
        gone = [shadow for shadow in SHADOWS if not _has(catalog, table, shadow)]
        if gone:
            lost = "content" in gone and table not in HERMES_FULLTEXT
            behind = shown([f"{table}_{gone[0]}"])
            yield FulltextFlaw(table, f"its table {behind} is missing", "writes", lost=lost)
            continue
        flaw: FulltextFlaw | Unchecked | None
        flaw = _structure(reader, table, seconds, whole) or _opens(reader, table, seconds)
        if flaw is None:
            flaw = fulltext_coverage.compare_with_source(
                reader, catalog, table, rebuild, seconds=seconds, whole=whole
            )
        if flaw is not None:
            yield flaw


def _has(catalog: Catalog, table: str, shadow: str) -> bool:
    if f"{table}_{shadow}" in catalog.tables:
        return True
    # A table with external content, or without sizes, has no such shadow table by design.
    absent = {"content": "content", "docsize": "columnsize"}.get(shadow)
    return absent is not None and absent in options(catalog.sql_of("table", table))


def _opens(reader: Reader, table: str, seconds: float | None) -> FulltextFlaw | None:
    """Search for a nonsense word, which reads the structure and the top of the index."""
    answer = reader.ask(
        f"SELECT rowid FROM {quote_name(table)} WHERE {quote_name(table)} MATCH 'zqxjzqxj' LIMIT 1",
        seconds,
    )
    if answer.error == "SQLITE_ERROR" and _CANNOT_OPEN.search(answer.said):
        return FulltextFlaw(table, "SQLite cannot open it", "writes")
    if answer.damaged or answer.error == "SQLITE_CONSTRAINT":
        return FulltextFlaw(table, "a search in it fails", "search")
    return None


def _count(reader: Reader, sql: str, seconds: float | None) -> int:
    answer = reader.ask(sql, seconds)
    return int(answer.rows[0][0]) if answer.rows else 0


def _structure(
    reader: Reader, table: str, seconds: float | None, whole: bool
) -> FulltextFlaw | None:
    """Check that the structure record exists, is valid, and lists only existing segments."""
    data = quote_name(f"{table}_data")
    answer = reader.ask(f"SELECT hex(block) FROM {data} WHERE id = {STRUCTURE}", seconds)
    if answer.error:
        return None  # the tree itself is damaged, or there was no time
    if not answer.rows:
        return FulltextFlaw(table, "its structure record is missing", "writes")
    try:
        segments = segments_of(bytes.fromhex(answer.rows[0][0]))
    except (CouldNotLook, *PARSE_ERRORS):
        return FulltextFlaw(table, "its structure record is damaged", "writes")
    if not whole and _have_ends(reader, table, segments, seconds):
        return None
    for number, first, last in segments:
        if missing := _pages(reader, data, (number, first, last), seconds, whole):
            noun = "page of its index is" if missing == 1 else "pages of its index are"
            return FulltextFlaw(table, f"{missing} {noun} gone", "search")
        if flaw := _terms(reader, table, (number, first, last), seconds, whole):
            return flaw
    return None


def _have_ends(
    reader: Reader, table: str, segments: list[tuple[int, int, int]], seconds: float | None
) -> bool:
    """Whether all segments have their first and last page, and entries in the index of terms.

    Only if not, each segment is checked by itself: a used search index has dozens of them.
    """
    data, index = quote_name(f"{table}_data"), quote_name(f"{table}_idx")
    numbers = {number for number, _, _ in segments}
    ends = {(number << 37) + page for number, first, last in segments for page in (first, last)}
    pages = reader.ask(f"SELECT count(*) FROM {data} WHERE id IN ({_joined(ends)})", seconds)
    if pages.error or pages.rows != [[len(ends)]]:
        return False
    terms = reader.ask(
        f"SELECT count(DISTINCT segid) FROM {index} WHERE segid IN ({_joined(numbers)})", seconds
    )
    return not terms.error and terms.rows == [[len(numbers)]]


def _joined(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _pages(
    reader: Reader,
    data: str,
    segment: tuple[int, int, int],
    seconds: float | None,
    whole: bool,
) -> int:
    """How many pages of a segment are missing; unless `whole`, only its two ends are checked."""
    number, first, last = segment
    low, high = (number << 37) + first, (number << 37) + last
    if whole:
        sql = f"SELECT count(*) FROM {data} WHERE id BETWEEN {low} AND {high}"
        answer = reader.ask(sql, seconds)
        wanted = last - first + 1
    else:
        answer = reader.ask(f"SELECT count(*) FROM {data} WHERE id IN ({low}, {high})", seconds)
        wanted = len({low, high})
    return 0 if answer.error or not answer.rows else max(0, wanted - int(answer.rows[0][0]))


def _terms(
    reader: Reader,
    table: str,
    segment: tuple[int, int, int],
    seconds: float | None,
    whole: bool,
) -> FulltextFlaw | None:
    """Check that each page on which a term starts is in the index of terms."""
    number, first, last = segment
    data, index = quote_name(f"{table}_data"), quote_name(f"{table}_idx")
    known = _count(reader, f"SELECT count(*) FROM {index} WHERE segid = {number}", seconds)
    low, high = (number << 37) + first, (number << 37) + last
    if not whole:
        high = low  # a segment always starts with a term
    wanted = _count(
        reader,
        f"SELECT count(*) FROM {data} WHERE id BETWEEN {low} AND {high} "
        "AND hex(substr(block, 3, 2)) <> printf('%04X', length(block))",
        seconds,
    )
    # A merge in progress may have moved the start of a segment by one page.
    if known + 1 < wanted or (wanted and not known):
        return FulltextFlaw(table, "its index of terms has lost entries", "search")
    return None


def segments_of(record: bytes) -> list[tuple[int, int, int]]:
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
    segments: list[tuple[int, int, int]] = []
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
    return bool(
        _count(
            reader,
            f"SELECT count(*) FROM (SELECT 1 FROM {quote_name(source)} "
            "WHERE instr(CAST(content AS BLOB), x'00') LIMIT 1)",
            None,
        )
    )
