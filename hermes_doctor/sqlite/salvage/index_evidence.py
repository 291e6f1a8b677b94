"""Determine from its indexes which rows a damaged table had.

SQLite writes an index in the same transaction as its table. So an entry proves that a row existed
when the file was last sound, and a complete index proves which rows did not exist.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

from hermes_doctor.sqlite.pages import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    PARSE_ERRORS,
    LostValue,
    ReplacedText,
    Value,
    record,
)
from hermes_doctor.sqlite.salvage import trees
from hermes_doctor.sqlite.salvage.layouts import Index, SalvagedCatalog
from hermes_doctor.sqlite.salvage.survey import DEEPEST, Survey
from hermes_doctor.sqlite.salvage.trees import Tree

Key = tuple[tuple[int, float | bytes], ...]
FIRST: Key = ()
"""Sorts before every key."""
LAST: Key = ((9, 0),)
"""Sorts after every key."""


def sort_key(values: Sequence[Value | LostValue]) -> Key | None:
    """A sort key in SQLite's order; None if one of the values is unknown."""
    parts: list[tuple[int, float | bytes]] = []
    for value in values:
        if value is None:
            parts.append((0, 0))
        elif isinstance(value, int | float):
            parts.append((1, value))
        elif isinstance(value, LostValue | ReplacedText):
            return None
        elif isinstance(value, str):
            parts.append((2, value.encode()))
        else:
            parts.append((3, bytes(value)))
    return tuple(parts)


class CompleteRanges:
    """The ranges of keys in which an index is complete."""

    def __init__(self, survey: Survey, root: int, width: int) -> None:
        self.lows: list[Key] = []
        self.highs: list[Key] = []
        self._visited: set[int] = set()
        low: Key | None = FIRST
        last = FIRST
        for entry in self._walk(survey, root, width, 0):
            if entry is not None and entry <= last:  # another sort order: descending, or NOCASE
                self.lows, self.highs = [], []
                return
            if entry is None and low is not None:
                self._add(low, last)
                low = None
            elif entry is not None:
                low = entry if low is None else low
                last = entry
        if low is not None:
            self._add(low, LAST)

    def _add(self, low: Key, high: Key) -> None:
        if low < high:
            self.lows.append(low)
            self.highs.append(high)

    def cover(self, wanted: Key) -> bool:
        """Whether the index is complete at this key."""
        place = bisect_right(self.lows, wanted) - 1
        return place >= 0 and wanted <= self.highs[place]

    def _walk(self, survey: Survey, page: int, width: int, depth: int) -> Iterator[Key | None]:
        """The keys in order, each with the rowid last; None where entries are missing."""
        kind = survey.kinds[page] if 0 < page <= survey.image.count else 0
        if kind not in (INDEX_LEAF, INDEX_INTERIOR) or page in self._visited or depth > DEEPEST:
            yield None
            return
        self._visited.add(page)
        children = survey.index_children(page) if kind == INDEX_INTERIOR else []
        for place, payload in enumerate(survey.entries(page)):
            if place < len(children):
                yield from self._walk(survey, children[place], width, depth + 1)
            yield _entry(payload, width)
        if children:
            yield from self._walk(survey, children[-1], width, depth + 1)


def _entry(payload: bytes, width: int) -> Key | None:
    try:
        values = record(payload)
    except PARSE_ERRORS:
        return None
    return sort_key(values) if len(values) == width else None


MOST = 10_000_000
"""The most rows that an index may name; one with more is not trusted."""


class IndexEvidence:
    """The rowids that the indexes of one table name."""

    def __init__(
        self, survey: Survey, catalog: SalvagedCatalog, table: str, copies: Sequence[Tree] = ()
    ) -> None:
        self.survey = survey
        self.copies = copies
        self.indexes = [index for index in catalog.indexes if index.table == table]
        self.walks = {index.name: trees.walk_index(survey, index.root) for index in self.indexes}
        full = [index for index in self.indexes if not index.partial]
        sound = [index for index in full if self.walks[index.name].whole]
        self.whole = bool(sound)
        """At least one index is complete, so it names every row."""
        self.known = bool(full) or any(tree.leaves for tree in copies)
        ids = array("q")
        for full_index in full:  # all indexes, because one may lack entries that others have
            ids.extend(islice((rowid for _, rowid in self.entries(full_index)), MOST))
        self.whole = self.whole and len(ids) < MOST
        if not sound:  # also use the full-text copies, which have the same rowids
            for leaf in (leaf for tree in copies for leaf in tree.leaves):
                ids.extend(survey.rowids(leaf.page))
        self.rowids = array("q", (rowid for rowid, _ in groupby(sorted(ids))))
        self._spans: list[tuple[Index, CompleteRanges]] | None = None

    def entries(self, index: Index) -> Iterator[tuple[list[Value | LostValue], int]]:
        """The columns of each entry of an index, and its rowid."""
        width = len(index.columns) + 1
        for values in trees.index_entries(self.survey, self.walks[index.name]):
            rowid = values[-1] if len(values) == width else None
            if isinstance(rowid, int):
                yield values[:-1], rowid
            else:
                self.whole = False  # the rowid of this entry is unknown

    def names(self, rowid: int) -> bool:
        """Whether an index has an entry for this row."""
        return contains(self.rowids, rowid)

    def denies(self, rowid: int) -> bool:
        """Whether the row was deleted or never written.

        That is so if a complete index, or the page that would have the copy of its text, lacks it.
        """
        if self.names(rowid):
            return False
        return self.whole or any(tree.leaves and not tree.lost(rowid) for tree in self.copies)

    def lacks(self, rowid: int, values: Mapping[str, Value | LostValue]) -> bool:
        """Whether an index is complete around the key of this row, but has no entry for it."""
        if self._spans is None:
            full = [(i, len(i.columns) + 1) for i in self.indexes if not i.partial]
            self._spans = [(i, CompleteRanges(self.survey, i.root, width)) for i, width in full]
        for index, spans in self._spans:
            if all(column in values for column in index.columns):
                wanted = sort_key([*(values[column] for column in index.columns), rowid])
                if wanted is not None and spans.cover(wanted):
                    return True
        return False

    def keys(self, column: str) -> frozenset[Value] | None:
        """All values of a column with an index of its own, if that index is complete."""
        for index in self.indexes:
            if index.columns == (column,) and not index.partial and self.whole:
                if not self.walks[index.name].whole:
                    continue
                values = (values[0] for values, _ in self.entries(index))
                known = frozenset(v for v in values if not isinstance(v, LostValue))
                return known if self.whole else None
        return None


def contains(ids: array[int], rowid: int) -> bool:
    """Whether a sorted array contains this number."""
    place = bisect_left(ids, rowid)
    return place < len(ids) and ids[place] == rowid
