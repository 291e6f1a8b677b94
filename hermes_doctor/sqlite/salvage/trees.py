"""Walk damaged b-trees, and look up rows in those with full-text copies of texts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hermes_doctor.sqlite.pages import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    LostValue,
    ReplacedText,
    Row,
    Value,
    kinds_of,
    record,
)
from hermes_doctor.sqlite.salvage.survey import HIGHEST, LOWEST, Leaf, Survey

OVERLAP = 3
"""Ranges of orphan leaves may overlap, so this many more leaves are searched."""


@dataclass
class Tree:
    """The readable leaves of a table in rowid order, and the missing ranges of rowids."""

    leaves: list[Leaf] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Ranges (above the first, up to the second rowid) whose leaf is unreadable, in order."""
    strays: list[int] = field(default_factory=list)
    """Leaves whose rowids do not fit their position in the tree."""
    seen: set[int] = field(default_factory=set)
    """The interior pages that were visited."""

    @property
    def whole(self) -> bool:
        """Whether no leaf is missing."""
        return not self.gaps

    def lost(self, rowid: int) -> bool:
        """Whether this row would be on an unreadable leaf."""
        place = bisect_right(self.gaps, (rowid - 1, HIGHEST)) - 1
        return place >= 0 and rowid <= self.gaps[place][1]


def walk_table(survey: Survey, root: int) -> Tree:
    """Walk the b-tree of a table."""
    tree = Tree()
    todo = [Leaf(root)]
    visited: set[int] = set()
    while todo:
        leaf = todo.pop()
        kind = survey.kinds[leaf.page] if 0 < leaf.page <= survey.image.count else 0
        if leaf.page in visited:
            kind = 0
        visited.add(leaf.page)
        if kind == INTERIOR:
            tree.seen.add(leaf.page)
            todo.extend(reversed(survey.children(leaf)))
        elif kind == LEAF and _fits(survey, leaf):
            tree.leaves.append(leaf)
        else:
            tree.gaps.append((leaf.low, leaf.high))
            if kind == LEAF:
                tree.strays.append(leaf.page)
    return tree


def walk_sizes(survey: Survey, root: int) -> Tree:
    """Walk the shadow table with the full-text sizes: an id and some bytes per row."""
    tree = walk_table(survey, root) if root > 1 else Tree()
    first = next(survey.rows(tree.leaves[0].page), None) if tree.leaves else None
    if first is not None and (first.kinds[:1] != [0] or not 2 <= len(first.kinds) <= 3):
        return Tree()
    return tree


def _fits(survey: Survey, leaf: Leaf) -> bool:
    """Whether most rowids on a leaf are in the range of its position.

    A leaf that a misdirected write has overwritten contains rows of another range.
    """
    if leaf.low == LOWEST and leaf.high == HIGHEST:
        return True
    if all(leaf.low < edge <= leaf.high for edge in survey.edges(leaf.page)):
        return True
    ids = survey.rowids(leaf.page)
    inside = sum(leaf.low < rowid <= leaf.high for rowid in ids)
    return 2 * inside >= len(ids)


class ByRowid:
    """Looks up rows of a table by rowid, in any order."""

    def __init__(self, survey: Survey, tree: Tree) -> None:
        self.survey = survey
        self.tree = tree
        pairs = sorted((leaf.low, leaf.high, leaf.page) for leaf in tree.leaves)
        self.lows = [low for low, _, _ in pairs]
        self.places = pairs
        self.page = 0
        self.cells: dict[int, int] = {}

    def payload(self, rowid: int) -> bytes | None:
        """The payload of the row, if it exists and is complete."""
        place = bisect_right(self.lows, rowid - 1) - 1
        for low, high, page in reversed(self.places[max(0, place - OVERLAP) : place + 1]):
            if not low < rowid <= high:
                continue
            if page != self.page:
                self.page = page
                cells = self.survey.cells(page, whole=False)
                self.cells = {cell.rowid: place for place, cell in enumerate(cells)}
            if rowid in self.cells:
                found = self.survey.cell(page, self.cells[rowid])
                if len(found.payload) == found.length:
                    return found.payload
        return None


@dataclass
class IndexPages:
    """The readable pages of an index."""

    whole: bool = True
    """No page of it is missing."""
    pages: list[int] = field(default_factory=list)


def walk_index(survey: Survey, root: int) -> IndexPages:
    """Walk the b-tree of an index."""
    walk = IndexPages()
    todo, visited = [root], set[int]()
    while todo:
        number = todo.pop()
        kind = survey.kinds[number] if 0 < number <= survey.image.count else 0
        if number in visited or kind not in (INDEX_LEAF, INDEX_INTERIOR):
            walk.whole = False
            continue
        visited.add(number)
        walk.pages.append(number)
        if kind == INDEX_INTERIOR:
            todo.extend(reversed(survey.index_children(number)))
    return walk


def index_entries(survey: Survey, entries: IndexPages) -> Iterator[list[Value | LostValue]]:
    """The columns of each entry of an index, the rowid last; empty for a damaged entry."""
    for number in entries.pages:
        for payload in survey.entries(number):
            try:
                yield record(payload)
            except PARSE_ERRORS:
                yield []


class FulltextCopies:
    """Compares rows of one table with the full-text copies of their text."""

    def __init__(self, copies: Sequence[ByRowid], places: Sequence[int]) -> None:
        self.copies = copies
        self.places = places
        """Positions in the record of the columns whose texts, joined by spaces, are the copy."""

    def heal(self, row: Row) -> bool | None:
        """Correct a row whose text is damaged.

        True if it was corrected, False if a copy confirms it or there is none to compare, None if
        the right text is unclear. A flipped bit or a torn page does not change the length of a
        text. So a copy of another length does not count against the row: it is an older version
        of an edited message.
        """
        mine = self._joined(row)
        first = self._copy(0, row.rowid)
        if mine is not None and first == mine:
            return False
        rest = [self._copy(place, row.rowid) for place in range(1, len(self.copies))]
        if mine is not None and mine in rest:
            return False
        seen = [copy for copy in (first, *rest) if copy is not None]
        if not seen:
            return False if mine is not None else None
        if len(set(seen)) > 1 or (mine is not None and len(seen) < 2):
            return None
        return True if self._split(row, seen[0]) else None

    def agree(self, row: Row) -> bool:
        """Whether a copy has the same text as the row."""
        mine = self._joined(row)
        return mine is not None and any(
            self._copy(place, row.rowid) == mine for place in range(len(self.copies))
        )

    def stored(self, row: Row) -> bool:
        """Whether invalid UTF-8 was stored like that, because a copy has the same bytes."""
        if any(type(v) is ReplacedText for n, v in enumerate(row.values) if n not in self.places):
            return False
        parts = [row.values[place] if place < len(row.values) else None for place in self.places]
        texts = [part if isinstance(part, str) else "" for part in parts]
        mine = b" ".join(t.raw if isinstance(t, ReplacedText) else t.encode() for t in texts)
        return any(self._copy(place, row.rowid) == mine for place in range(len(self.copies)))

    def complete(self, row: Row) -> bool:
        """Fill the lost texts of a truncated row; return whether a copy fits."""
        seen = {self._copy(place, row.rowid) for place in range(len(self.copies))} - {None}
        return any(copy is not None and self._split(row, copy) for copy in seen)

    def text(self, rowid: int) -> str | None:
        """The copy of the text of a row that is lost entirely."""
        for place in range(len(self.copies)):
            copy = self._copy(place, rowid)
            if copy is not None:
                try:
                    return copy.decode()
                except UnicodeDecodeError:
                    continue
        return None

    def _joined(self, row: Row) -> bytes | None:
        """The text that a copy of this row must have; None if the row's own text is damaged."""
        parts = []
        for place in self.places:
            value = row.values[place] if place < len(row.values) else None
            if value is None:
                parts.append(b"")
            elif isinstance(value, str) and not isinstance(value, ReplacedText):
                parts.append(value.encode())
            else:
                return None
        return b" ".join(parts)

    def _copy(self, place: int, rowid: int) -> bytes | None:
        payload = self.copies[place].payload(rowid)
        if payload is None:
            return None
        try:
            kinds, at = kinds_of(payload)
        except PARSE_ERRORS:
            return None
        if len(kinds) != 2 or kinds[0] or kinds[1] < 13 or not kinds[1] & 1:
            return None
        return payload[at:]

    def _split(self, row: Row, copy: bytes) -> bool:
        """Split a copy into the texts of the row, by the lengths in its record."""
        sizes = [row.length(place) for place in self.places]
        if sum(sizes) + len(sizes) - 1 != len(copy):
            return False
        at = 0
        texts: list[tuple[int, Value | LostValue]] = []
        for place, size in zip(self.places, sizes, strict=True):
            if at and copy[at - 1 : at] != b" ":
                return False
            if place < len(row.kinds) and row.kinds[place] >= 13:
                try:
                    texts.append((place, copy[at : at + size].decode()))
                except UnicodeDecodeError:
                    return False
            at += size + 1
        for place, value in texts:
            if row.values[place] != value:
                row.values[place] = value
        return True
