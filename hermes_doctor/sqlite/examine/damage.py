"""Translate the output of SQLite's integrity check into damaged tables, indexes and searches."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from hermes_doctor.core.lazy import pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.sqlite.blueprint import quote_name
from hermes_doctor.sqlite.pages import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    DatabasePages,
    children_of,
    first_byte,
    local_size,
    varint,
)
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.schema import Catalog, SchemaRow, foreign_tokenizer

_PAGES = pattern(r"\b[Pp]age (\d{1,10})|\bpage number (\d{1,10})")
_ROOTS = pattern(r"\b[Tt]ree (\d{1,10})")
_UNUSED = pattern(r"Page (\d+):? (?:is )?never used")
_INDEX = pattern(
    r"(?:missing from|entries in|entry in|not in) index (.+)$|^index (.+) has|in index (.+)$"
)
_VALUE = pattern(r"^(?:NULL|TEXT|NUMERIC|non-\w+) value in (.+\.[^.]*)$")
_CHECK = pattern(r"^CHECK constraint failed in (.+)$")
_SEARCH = pattern(r"for FTS[345] table (?:main\.)?(\S+)")
_SCHEMA = pattern(r"malformed database schema \((.+?)\)")


@dataclass(frozen=True)
class Damage:
    """The damaged parts of a database, by name."""

    rows: frozenset[str] = frozenset()
    """Tables with damaged rows, which cannot be rebuilt from anything else."""
    disputed: Mapping[str, int] = field(default_factory=dict)
    """Those of them whose rows differ from their own indexes, and how many rows do."""
    rules: frozenset[str] = frozenset()
    """Columns with values that their declaration forbids; every row can be read."""
    indexes: frozenset[str] = frozenset()
    searches: frozenset[str] = frozenset()
    """Full-text tables, which can be rebuilt from the rows."""
    inverted: frozenset[str] = frozenset()
    """Those of them that differ from their rows and are otherwise sound."""
    free: bool = False
    """The freelist is wrong."""
    unused: int = 0
    """Pages that belong to no table or index and are not on the freelist."""
    pages: frozenset[int] = frozenset()
    schema: bool = False
    """SQLite cannot read the list of tables."""
    finished: bool = True

    @property
    def any(self) -> bool:
        """Whether anything is damaged."""
        return bool(
            self.rows
            or self.indexes
            or self.searches
            or self.free
            or self.unused
            or self.schema
            or self.rules
        )


@dataclass
class _Reading:
    """The messages of one check, sorted by what they name."""

    pages: set[int] = field(default_factory=set)
    roots: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    inverted: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)
    free: bool = False
    unused: int = 0
    vague: set[str] = field(default_factory=set)
    """Tables with a damaged page that may also belong to one of their indexes."""
    other: bool = False
    count: int = 0

    def take(self, table: str, sentence: str) -> None:
        """Sort in one message of SQLite; `table` is set if a single table was checked."""
        if sentence.startswith("*** in database") or not sentence.strip():
            return
        self.count += 1
        if _UNUSED.search(sentence):
            self.unused += 1
        elif sentence.lower().lstrip().startswith(("main freelist", "freelist")):
            self.free = True
        elif named := _SEARCH.search(sentence):
            self.inverted.add(named[1])
        elif named := _VALUE.search(sentence) or _CHECK.search(sentence):
            self.rules.add(named[1])
        elif named := _INDEX.search(sentence):
            self.names.add(next(group for group in named.groups() if group))
        else:
            roots = {int(number) for number in _ROOTS.findall(sentence)}
            pages = {int(a or b) for a, b in _PAGES.findall(sentence)}
            self.roots |= roots
            self.pages |= pages
            if table and not roots:
                (self.vague if pages else self.names).add(table)
            self.other |= not roots and not pages and not table


def find_damage(
    messages: Iterable[tuple[str, str]],
    error: str,
    catalog: Catalog,
    pages: DatabasePages | None,
    *,
    seconds: float,
) -> Damage:
    """Find out what is damaged from the messages of a check (table, text) or its error."""
    reading = _Reading()
    for table, text in messages:
        for sentence in text.split("\n"):
            reading.take(table, sentence)
    if malformed := _SCHEMA.search(error):
        return Damage(
            rows=frozenset({SCHEMA}),
            schema=True,
            pages=frozenset({1}),
            searches=frozenset({malformed[1]} & set(catalog.searches)),
        )
    trees = PageOwners(finished=False)
    if pages is not None and (reading.pages or reading.roots or reading.other or error):
        trees = find_owners(pages, catalog.trees, seconds=seconds)
    by_root = {entry.root: entry.name for entry in catalog.entries if entry.root}
    names = set(reading.names) | set(trees.bad.values())
    names |= {by_root.get(root, SCHEMA) for root in reading.roots}
    located = {trees.pages[page] for page in reading.pages if page in trees.pages}
    names |= located
    if not reading.pages <= set(trees.pages):  # the owner of some page was not found
        names |= reading.vague
    lost = bool(reading.pages or reading.other or error) and not names
    if lost:  # the damage is in no known b-tree: assume the worst
        names.add(SCHEMA if not catalog.entries else "an unknown table")
    there = pages.count if pages is not None else 1 << 32
    hit = frozenset(page for page in reading.pages | set(trees.bad) if 0 < page <= there)
    return _sorted(names, reading, catalog, hit)


def _sorted(names: set[str], reading: _Reading, catalog: Catalog, pages: frozenset[int]) -> Damage:
    worth = {name: catalog.worth(name) for name in names}
    searches = {catalog.search_of(name) or name for name in names if worth[name] == "search"}
    foreign = {  # SQLite cannot check these, whatever they contain
        e.name for e in catalog.entries if e.name in reading.inverted and foreign_tokenizer(e.sql)
    }
    inverted = reading.inverted - searches - foreign
    return Damage(
        rows=frozenset(name for name in names if worth[name] == "rows"),
        indexes=frozenset(name for name in names if worth[name] == "index"),
        searches=frozenset(searches | inverted),
        inverted=frozenset(inverted),
        free=reading.free,
        unused=reading.unused,
        pages=pages,
        rules=frozenset(reading.rules),
        schema=SCHEMA in names,
    )


TABLE, INDEX = (INTERIOR, LEAF), (INDEX_INTERIOR, INDEX_LEAF)
SCHEMA = "sqlite_master"


class PageOwners:
    """The table or index of each page; `finished` is False if the time ran out."""

    def __init__(self, *, finished: bool = True) -> None:
        self.pages: dict[int, str] = {}
        self.bad: dict[int, str] = {}
        """Pages that are not what their parent page says, and the damaged table or index."""
        self.finished = finished


def find_owners(
    pages: DatabasePages, trees: Iterable[tuple[str, int, bool]], *, seconds: float
) -> PageOwners:
    """Walk each b-tree (name, root page, whether it is a table) until the time is over."""
    owners = PageOwners()
    end = time.monotonic() + limits.stretch(seconds)
    for name, root, table in [(SCHEMA, 1, True), *trees]:
        todo = [root]
        while todo:
            if time.monotonic() > end:
                owners.finished = False
                return owners
            number = todo.pop()
            if number in owners.pages:
                owners.bad[number] = name
                continue
            owners.pages[number] = name
            try:
                todo += _children(pages, number, TABLE if table else INDEX, owners)
            except (CouldNotLook, *PARSE_ERRORS):
                owners.bad[number] = name
    return owners


def _children(
    pages: DatabasePages, number: int, kinds: tuple[int, int], owners: PageOwners
) -> list[int]:
    """The children of a page, whose overflow pages get the same owner."""
    page, kind, cells = pages.read_cells(number)
    start = first_byte(number)
    end = start + (12 if kind == kinds[0] else 8) + 2 * len(cells)
    if kind not in kinds:
        raise CouldNotLook("it is a page of another kind")
    if any(at < end or at >= pages.usable for at in cells):
        raise CouldNotLook("a cell is outside its page")
    if kind != INTERIOR:
        for at in cells:
            payload = at + 4 if kind == INDEX_INTERIOR else at
            _overflow(pages, page, payload, owners, owners.pages[number], table=kind == LEAF)
    return children_of(page, start, cells) if kind == kinds[0] else []


def _overflow(
    pages: DatabasePages, page: bytes, at: int, owners: PageOwners, name: str, *, table: bool
) -> None:
    """Follow the overflow pages of a long row."""
    length, at = varint(page, at)
    if table:
        _, at = varint(page, at)
    here = local_size(length, pages.usable, index=not table)
    if here == length:
        return
    (number,) = struct.unpack_from(">I", page, at + here)
    left = length - here
    while left > 0:
        if number in owners.pages:
            owners.bad[number] = name
            return
        owners.pages[number] = name
        try:
            (following,) = struct.unpack_from(">I", pages.read(number))
        except CouldNotLook:
            owners.bad[number] = name
            return
        left -= pages.usable - 4
        number = following


_PARTIAL = pattern(r"\)\s*WHERE\s+(.+)$", re.IGNORECASE | re.DOTALL)


def with_disputed_rows(
    damage: Damage, reader: Reader, catalog: Catalog, seconds: float | None
) -> Damage:
    """Add tables whose rows contradict their indexes: there the row may be the damaged one."""
    disputed: dict[str, int] = {}
    for entry in catalog.entries:
        if entry.kind == "index" and entry.name in damage.indexes:
            count = _differing(reader, entry, seconds)
            if count > disputed.get(entry.table, 0):
                disputed[entry.table] = count
    return replace(damage, rows=damage.rows | set(disputed), disputed=disputed)


def _differing(reader: Reader, index: SchemaRow, seconds: float | None) -> int:
    """Count rows that the index has by rowid, but with other values."""
    parts = reader.ask(f"PRAGMA index_xinfo({quote_name(index.name)})", seconds)
    keys = [part for part in parts.rows if part[5]]
    if parts.error or not keys or any(part[1] == -2 or not part[2] for part in keys):
        return 0  # an index of expressions has no values to compare
    names = [quote_name(str(part[2])) for part in keys]
    partial = _PARTIAL.search(index.sql)
    where = f" WHERE {partial[1]}" if partial else ""
    known = ", ".join(f"{name} AS k{number}" for number, name in enumerate(names))
    differs = " OR ".join(f"o.{name} IS NOT i.k{number}" for number, name in enumerate(names))
    table = quote_name(index.table)
    answer = reader.ask(
        f"SELECT count(*) FROM (SELECT rowid AS r, {known} FROM {table} "
        f"INDEXED BY {quote_name(index.name)}{where}) AS i CROSS JOIN {table} AS o NOT INDEXED "
        f"ON o.rowid = i.r WHERE {differs}",
        seconds,
    )
    return int(answer.rows[0][0]) if answer.rows and not answer.error else 0
