"""Places where a write-ahead log contradicts the database file beside it.

A log of the file's own continues its b-trees: what a page of the log points to, and what points
to a page of the log, fits across the two files. In a log of another life of the file each page
is well formed, and still the parts do not fit. A damaged page is different: it is wrong in
itself. So only well-formed pages count here, and one damaged pointer is not enough.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import pairwise

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import records
from hermes_doctor.sqlite.catalog import MOST_PAGES
from hermes_doctor.sqlite.cells import BROKEN, INTERIOR, LEAF, head, signed, varint
from hermes_doctor.sqlite.pages import Pages
from hermes_doctor.system import time_limits

ENOUGH = 2
"""Pages of the log that must contradict the file; one can be a single flipped bit."""
_TABLE, _INDEX = (INTERIOR, LEAF), (2, 10)
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class _Step(NamedTuple):
    """One page to look at, and what the page above it says of it."""

    number: int
    parent: int
    table: bool
    low: int = _LOWEST
    high: int = _HIGHEST
    low_from: int = 0
    """The page that sets the lower limit, which may be several levels above."""
    high_from: int = 0


class Comparison:
    """A walk through the b-trees of a database as its log shows them."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.between: set[int] = set()
        """Pages of the log that do not fit the file."""
        self.within = False
        """The log contradicts itself, as damage does."""
        self.finished = True
        """Every page was compared. Otherwise more may be found."""

    @property
    def foreign(self) -> bool:
        """Whether both files agree with themselves and not with each other."""
        return len(self.between) >= ENOUGH and not self.within

    @property
    def undecided(self) -> bool:
        """Whether the time ended before either answer was found."""
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
        """By root page: the page of the schema that names it, which need not be page 1."""
        found: dict[int, int] = {}
        try:
            for page, row in records.placed(self.pages, 1, most=MOST_PAGES):
                root = row[3] if len(row) > 3 else None
                if isinstance(root, int) and root:
                    found.setdefault(root, page)
        except CouldNotLook:
            pass  # the walk from page 1 finds out what is wrong with the schema
        return found

    def _look(self, step: _Step) -> list[_Step]:
        own = step.number in self.pages.frames
        try:
            page = self.pages.read(step.number)
        except CouldNotLook:  # neither file has it
            self._count(step, missing=True)
            return []
        start = 100 if step.number == 1 else 0
        found = head(page, start, self.pages.usable)
        if found is None:
            if not own or step.parent in self.pages.frames:
                self._count(step)
            return []  # else it may be damaged, or a page of another kind: no telling
        kind, cells = found
        if kind not in (_TABLE if step.table else _INDEX):
            self._count(step)
            return []
        try:
            keys = self._keys(page, kind, cells) if step.table else []
        except BROKEN:
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
        """The rowids on a page of a table; of a leaf the first and the last are enough."""
        if kind == LEAF:
            ends = (cells[0], cells[-1]) if len(cells) > 1 else cells
            return [signed(varint(page, varint(page, at)[1])[0]) for at in ends]
        return [signed(varint(page, at + 4)[0]) for at in cells]

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
        """Whether pages of the file have leaves below them, which need not be read."""
        for one in steps:
            if one.number not in self.pages.frames:
                try:
                    return self.pages.read(one.number)[0] in (LEAF, 10)
                except CouldNotLook:
                    return False
        return False

    def _count(self, step: _Step, *, missing: bool = False) -> None:
        """Note that a page is not what the page above it says."""
        log = [n for n in (step.parent, step.number) if n in self.pages.frames]
        if missing:
            self.between.add(step.parent)
        elif len(log) == 2 and step.parent != step.number:
            self.within = True
        elif log:
            self.between.add(log[0])
