"""Walk damaged b-trees: skip unreadable pages and record which rowids are missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from hermes_doctor.sqlite.cells import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    LostValue,
    Value,
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
