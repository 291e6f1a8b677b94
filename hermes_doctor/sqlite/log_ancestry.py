"""Decide whether a write-ahead log or a journal belongs to the database next to it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable
from itertools import pairwise

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits
from hermes_doctor.sqlite.header import MAGIC, Header
from hermes_doctor.sqlite.pages import (
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    DatabasePages,
    children_of,
    first_byte,
    page_header,
    to_signed,
    varint,
)
from hermes_doctor.sqlite.wal import FRAME, LOG_HEAD, Undo, WriteAheadLog

PROVEN, LIKELY, UNKNOWN, IMPOSSIBLE = "proven", "likely", "unknown", "impossible"


class Ancestry(NamedTuple):
    """How certain it is that two files belong together, and the evidence."""

    level: str
    what: str


class _First(NamedTuple):
    """The counters on page 1 of a database."""

    changes: int
    pages: int
    schema: int
    """How often the schema was changed."""
    keeps_log: bool

    @classmethod
    def of(cls, page: bytes | None) -> _First | None:
        """Parse page 1; None if its counters contradict each other."""
        if page is None or len(page) < 100 or page[:16] != MAGIC or page[24:28] != page[92:96]:
            return None
        changes, pages = struct.unpack_from(">2I", page, 24)
        (schema,) = struct.unpack_from(">I", page, 40)
        return cls(changes, pages, schema, page[18:20] == b"\2\2")


def of_journal(main: int, header: Header, journal: int, undo: Undo, log: WriteAheadLog) -> Ancestry:
    """Whether a journal can be that of the file's last transaction."""
    now = _First.of(header.head)
    if undo.shared:
        return Ancestry(UNKNOWN, "it belongs to a transaction over several databases")
    if header.page_size and undo.page_size != header.page_size:
        return Ancestry(IMPOSSIBLE, "it belongs to a database with pages of another size")
    if now is None:
        return Ancestry(UNKNOWN, "the first page of the database does not show it")
    if now.keeps_log and (log.committed or undo.places.keys() - {1}):
        what = "the database keeps a write-ahead log, which never leaves such a journal"
        return Ancestry(IMPOSSIBLE, what)
    if 1 in undo.places:
        return _counted(now, _First.of(undo.page(journal, 1)), undo)
    begun = now.changes <= 1 if not undo.pages else now.pages == undo.pages
    if not begun:
        what = f"it belongs to a database of {undo.pages} pages, and this one had another number"
        return Ancestry(IMPOSSIBLE, what)
    size = undo.page_size
    if undo.pages * size == header.snapshot.size and all(
        undo.page(journal, number) == os.pread(main, size, (number - 1) * size)
        for number in undo.places
    ):
        return Ancestry(PROVEN, "all its pages are the same in the database")
    return Ancestry(LIKELY, f"it began with the {undo.pages} pages that the database had")


def _counted(now: _First, then: _First | None, undo: Undo) -> Ancestry:
    if then is None or then.pages != undo.pages:
        return Ancestry(UNKNOWN, "the first page in it contradicts its header")
    since = (now.changes - then.changes) & 0xFFFFFFFF
    if since <= 1 and now.schema < then.schema:
        what = f"it began at schema {then.schema:,}, and the database is at {now.schema:,}"
        return Ancestry(IMPOSSIBLE, what)
    if since <= 1:  # a transaction increments the counter as its last action
        return Ancestry(PROVEN, f"it began at change {then.changes:,} of the database, its last")
    what = f"it began at change {then.changes:,}, and the database is at {now.changes:,}"
    return Ancestry(IMPOSSIBLE, what)


def of_log(header: Header, log_fd: int, log: WriteAheadLog) -> Ancestry:
    """Whether a write-ahead log can have started from this file, or a checkpointed state of it.

    The first version of page 1 in a log has a change counter one higher than the file that the log
    started from (or equal, if the same connection made the previous change), and the counter never
    decreases. If page 1 is not in the log, the database keeps its size.
    """
    now = _First.of(header.head)
    if log.page_size and header.page_size and log.page_size != header.page_size:
        return Ancestry(IMPOSSIBLE, "it belongs to a database with pages of another size")
    if now is None or not log.committed:
        return Ancestry(UNKNOWN, "the first page of the database does not show it")
    if 1 not in log.pages:
        if now.pages == log.db_pages:
            return Ancestry(LIKELY, f"it leaves the database at its {now.pages} pages")
        what = f"it belongs to a database of {log.db_pages} pages, and this one has {now.pages}"
        return Ancestry(IMPOSSIBLE, what)
    offsets = (_begin(log_fd, log), log.pages[1])
    first, last = (_First.of(os.pread(log_fd, log.page_size, at)) for at in offsets)
    if first is None or last is None:
        return Ancestry(UNKNOWN, "the first page in it contradicts itself")
    if first.changes - 1 <= now.changes <= last.changes:
        return Ancestry(PROVEN, f"it continues from change {now.changes:,} of the database")
    span = f"changes {first.changes:,} to {last.changes:,}"
    return Ancestry(IMPOSSIBLE, f"it holds {span}, and the database is at {now.changes:,}")


def _begin(fd: int, log: WriteAheadLog) -> int:
    """The offset of the first version of page 1 in a log."""
    step = FRAME + log.page_size
    for at in range(LOG_HEAD, LOG_HEAD + log.committed * step, step):
        if os.pread(fd, 4, at) == b"\0\0\0\1":
            return at + FRAME
    return log.pages[1]


ENOUGH = 2
"""Pages of the log that must contradict the file; one can be a single flipped bit."""
_TABLE, _INDEX = (INTERIOR, LEAF), (2, 10)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class _Step(NamedTuple):
    """One page to visit, and what its parent page says about it."""

    number: int
    parent: int
    table: bool
    low: int = _LOWEST
    high: int = _HIGHEST
    low_from: int = 0
    """The page that sets the lower limit; it may be several levels above."""
    high_from: int = 0


class PageComparison:
    """Walks the b-trees of a database with its write-ahead log applied."""

    def __init__(self, pages: DatabasePages) -> None:
        self.pages = pages
        self.between: set[int] = set()
        """Pages of the log that do not fit the file."""
        self.within = False
        """The log contradicts itself, which means damage."""
        self.finished = True
        """Every page was compared; if not, there may be more contradictions."""

    @property
    def foreign(self) -> bool:
        """Whether both files are consistent in themselves but contradict each other."""
        return len(self.between) >= ENOUGH and not self.within

    @property
    def undecided(self) -> bool:
        """Whether the time ran out before there was an answer."""
        return not (self.finished or self.foreign or self.within)

    def walk(self, trees: Iterable[tuple[str, int, bool]], seconds: float | None) -> None:
        """Follow each tree (its name, its root page, whether it is a table) while there is time."""
        clock = limits.Stopwatch()
        named = self._named()
        todo = [_Step(1, 1, True)]
        todo += [_Step(root, named[root], table) for _, root, table in trees if root in named]
        seen: set[int] = set()
        while todo:
            if seconds is not None and clock.read() > seconds:
                self.finished = False
                return
            step = todo.pop()
            if step.number not in seen:
                seen.add(step.number)
                todo += self._look(step)

    def _named(self) -> dict[int, int]:
        """By root page: the page of the schema that names it, which is not always page 1."""
        pages: dict[int, int] = {}
        try:
            for page, row in self.pages.rows_with_pages(1):
                root = row[3] if len(row) > 3 else None
                if isinstance(root, int) and root:
                    pages.setdefault(root, page)
        except CouldNotLook:
            pass  # the walk from page 1 finds the damage in the schema
        return pages

    def _look(self, step: _Step) -> list[_Step]:
        own = step.number in self.pages.frames
        try:
            page = self.pages.read(step.number)
        except CouldNotLook:  # neither file has it
            self._count(step, missing=True)
            return []
        header = page_header(page, first_byte(step.number), self.pages.usable)
        if header is None:
            if not own or step.parent in self.pages.frames:
                self._count(step)
            return []  # else it may be damaged, or of another type: undecided
        kind, cells = header
        if kind not in (_TABLE if step.table else _INDEX):
            self._count(step)
            return []
        try:
            keys = self._keys(page, kind, cells) if step.table else []
        except PARSE_ERRORS:
            self.within |= own
            return []
        if any(first >= second for first, second in pairwise(keys)):
            self.within |= own
            return []
        if keys and not step.low < keys[0] <= keys[-1] <= step.high:
            limit = step.low_from if keys[0] <= step.low else step.high_from
            self._count(step._replace(parent=limit))
            return []
        return self._children(step, page, kind, cells, keys)

    def _keys(self, page: bytes, kind: int, cells: tuple[int, ...]) -> list[int]:
        """The rowids on a page of a table; for a leaf only the first and the last."""
        if kind == LEAF:
            ends = (cells[0], cells[-1]) if len(cells) > 1 else cells
            return [to_signed(varint(page, varint(page, at)[1])[0]) for at in ends]
        return [to_signed(varint(page, at + 4)[0]) for at in cells]

    def _children(
        self, step: _Step, page: bytes, kind: int, cells: tuple[int, ...], keys: list[int]
    ) -> list[_Step]:
        if kind not in (INTERIOR, 2):
            return []
        numbers = children_of(page, first_byte(step.number), cells)
        lows = [step.low, *keys] if step.table else [_LOWEST] * len(numbers)
        highs = [*keys, step.high] if step.table else [_HIGHEST] * len(numbers)
        inner = [step.number] * (len(numbers) - 1)  # this page sets the bounds between two children
        bounds = zip(lows, highs, [step.low_from, *inner], [*inner, step.high_from], strict=True)
        children = zip(numbers, bounds, strict=True)
        below = [_Step(number, step.number, step.table, *bound) for number, bound in children]
        if step.number in self.pages.frames or not self._leaves(below):
            return below
        return [child for child in below if child.number in self.pages.frames]

    def _leaves(self, steps: list[_Step]) -> bool:
        """Whether the first of these pages in the file is a leaf, so none needs to be read."""
        for step in steps:
            if step.number not in self.pages.frames:
                try:
                    return self.pages.read(step.number)[0] in (LEAF, 10)
                except CouldNotLook:
                    return False
        return False

    def _count(self, step: _Step, *, missing: bool = False) -> None:
        """Record that a page is not what its parent says."""
        log = [n for n in (step.parent, step.number) if n in self.pages.frames]
        if missing:
            self.between.add(step.parent)
        elif len(log) == 2 and step.parent != step.number:
            self.within = True
        elif log:
            self.between.add(log[0])
