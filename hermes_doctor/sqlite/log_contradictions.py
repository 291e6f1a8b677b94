"""Find pages of a write-ahead log that contradict the database file next to it.

A log that belongs to the file continues its b-trees: pointers between pages of the log and pages
of the file match. In a log of another or an older version of the file each page is well formed,
but the pointers do not match. A damaged page is different: it is not well formed. So only
well-formed pages count here, and a single wrong pointer is not enough.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import records
from hermes_doctor.sqlite.catalog import MOST_PAGES
from hermes_doctor.sqlite.cells import INTERIOR, LEAF, PARSE_ERRORS, page_header, to_signed, varint
from hermes_doctor.sqlite.pages import DatabasePages
from hermes_doctor.system import time_limits

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


class Comparison:
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

    def walk(self, roots: Iterable[tuple[int, bool]], seconds: float | None) -> None:
        """Follow each tree (its root page, whether it is a table) while there is time."""
        clock = time_limits.Stopwatch()
        named = self._named()
        todo = [_Step(1, 1, True)]
        todo += [_Step(root, named[root], table) for root, table in roots if root in named]
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
        found: dict[int, int] = {}
        try:
            for page, row in records.rows_with_pages(self.pages, 1, max_pages=MOST_PAGES):
                root = row[3] if len(row) > 3 else None
                if isinstance(root, int) and root:
                    found.setdefault(root, page)
        except CouldNotLook:
            pass  # the walk from page 1 finds the damage in the schema
        return found

    def _look(self, step: _Step) -> list[_Step]:
        own = step.number in self.pages.frames
        try:
            page = self.pages.read(step.number)
        except CouldNotLook:  # neither file has it
            self._count(step, missing=True)
            return []
        start = 100 if step.number == 1 else 0
        found = page_header(page, start, self.pages.usable)
        if found is None:
            if not own or step.parent in self.pages.frames:
                self._count(step)
            return []  # else it may be damaged, or of another type: undecided
        kind, cells = found
        if kind not in (_TABLE if step.table else _INDEX):
            self._count(step)
            return []
        try:
            keys = self._keys(page, kind, cells) if step.table else []
        except PARSE_ERRORS:
            self.within |= own
            return []
        if any(one >= two for one, two in pairwise(keys)):
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
        start = 100 if step.number == 1 else 0
        numbers = [struct.unpack_from(">I", page, at)[0] for at in cells]
        numbers.append(struct.unpack_from(">I", page, start + 8)[0])
        lows = [step.low, *keys] if step.table else [_LOWEST] * len(numbers)
        highs = [*keys, step.high] if step.table else [_HIGHEST] * len(numbers)
        last = len(numbers) - 1
        below = [
            _Step(
                number,
                step.number,
                step.table,
                low,
                high,
                step.number if place else step.low_from,
                step.number if place < last else step.high_from,
            )
            for place, (number, low, high) in enumerate(zip(numbers, lows, highs, strict=True))
        ]
        if step.number in self.pages.frames or not self._leaves(below):
            return below
        return [one for one in below if one.number in self.pages.frames]

    def _leaves(self, steps: list[_Step]) -> bool:
        """Whether the first of these pages in the file is a leaf, so none needs to be read."""
        for one in steps:
            if one.number not in self.pages.frames:
                try:
                    return self.pages.read(one.number)[0] in (LEAF, 10)
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
