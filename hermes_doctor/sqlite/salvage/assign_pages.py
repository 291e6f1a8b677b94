"""Assign each leaf page to its table, by the b-trees or, if they are damaged, by its rows."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.fulltext import parse_indexes
from hermes_doctor.sqlite.header import MAGIC
from hermes_doctor.sqlite.pages import LEAF, LostValue, ReplacedText, Row, Value
from hermes_doctor.sqlite.salvage import row_fit, trees
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.index_evidence import IndexEvidence
from hermes_doctor.sqlite.salvage.layouts import (
    SHADOW_SUFFIXES,
    Layout,
    SalvagedCatalog,
    content_layout,
    expected_layouts,
    shadow_tables,
)
from hermes_doctor.sqlite.salvage.survey import HIGHEST, LOWEST, Leaf, Survey, decode
from hermes_doctor.sqlite.salvage.trees import Tree


@dataclass
class OrphanVerdict:
    """The verdict on one orphan page, as counts of its rows."""

    named: int = 0
    """Rows that an index or a full-text copy still names."""
    foreign: int = 0
    """Rows that provably do not belong there."""
    unknown: int = 0
    """Rows without any evidence."""

    @property
    def live(self) -> bool:
        """Whether the page still belongs to the table."""
        return not self.foreign and bool(self.named or self.unknown)


@dataclass
class OrphanJudge:
    """Judges orphan pages that look like pages of one table."""

    survey: Survey
    evidence: IndexEvidence
    layout: Layout
    linked: Tree
    parents: Mapping[str, Collection[Value]]
    """By foreign key column: all values that it can have, if a complete index lists them."""

    def __post_init__(self) -> None:
        self.lows = [leaf.low for leaf in self.linked.leaves]

    def judge(self, page: int, *, in_freelist: bool) -> OrphanVerdict:
        """Judge one page; `in_freelist` if the remaining part of the freelist contains it."""
        verdict = OrphanVerdict()
        for cell in self.survey.cells(page, whole=False):
            if self.evidence.names(cell.rowid):
                verdict.named += 1
                continue
            if in_freelist or self._elsewhere(cell.rowid) or self.evidence.denies(cell.rowid):
                verdict.foreign += 1
                continue
            row = decode(cell)
            if row is not None:
                known = dict(zip(self.layout.names, row.values, strict=False))
                if self.layout.rowid_column is not None:
                    known[self.layout.names[self.layout.rowid_column]] = cell.rowid
                dead = self.denies(cell.rowid, known)
                verdict.foreign += dead
                verdict.unknown += not dead
        return verdict

    def _elsewhere(self, rowid: int) -> bool:
        """Whether the row would be on a leaf that is reachable from the root.

        Past the last row of the last leaf nothing is certain: after an interrupted checkpoint the
        next leaf may exist although no page points to it.
        """
        place = bisect_right(self.lows, rowid - 1) - 1
        if place < 0 or self.linked.lost(rowid):
            return False
        leaf = self.linked.leaves[place]
        if rowid > leaf.high:
            return False
        return leaf.high != HIGHEST or rowid <= max(self.survey.edges(leaf.page), default=rowid)

    def denies(self, rowid: int, known: Mapping[str, Value | LostValue]) -> bool:
        """Whether an index that is complete there lacks the row, or the row it refers to."""
        for column, keys in self.parents.items():
            value = known.get(column)
            if (
                value is not None
                and not isinstance(value, LostValue | ReplacedText)
                and value not in keys
            ):
                return True
        return self.evidence.lacks(rowid, known)


SAMPLE = 40
"""Pages that are sampled to decide which table a group of pages belongs to."""


@dataclass
class TablePages:
    """One table of the damaged database: its layout and its leaf pages."""

    layout: Layout
    tree: Tree
    has_root: bool
    """Its root page was found and leads to its rows."""
    damaged: bool = False
    linked: Tree = field(default_factory=Tree)
    """The part of the tree that is reachable from its root page."""
    freed_leaves: set[int] = field(default_factory=set)
    """Adopted leaves that had been freed: only their rows that an index names are used."""
    unknown_rows: int = 0
    """Rows of adopted leaves for which there is no evidence whether they were deleted."""


@dataclass
class AssignedPages:
    """All tables of the damaged database, with the evidence about their rows."""

    survey: Survey
    catalog: SalvagedCatalog
    tables: dict[str, TablePages] = field(default_factory=dict)
    copies: dict[str, list[str]] = field(default_factory=dict)
    """By table: the shadow tables with full-text copies of its texts, under the same rowids."""
    sizes: dict[str, list[str]] = field(default_factory=dict)
    """By table: the shadow tables with the full-text size of each of its rows."""
    skipped_leaves: int = 0
    """Leaves that were skipped because their rows were deleted."""
    _witnesses: dict[str, IndexEvidence] = field(default_factory=dict)
    _juries: dict[str, OrphanJudge] = field(default_factory=dict)

    def evidence(self, name: str) -> IndexEvidence:
        """The evidence about the rows of a table."""
        if name not in self._witnesses:
            copies = [self.tables[shadow].linked for shadow in self.copies.get(name, ())]
            roots = map(self.catalog.root, self.sizes.get(name, ()))
            copies += [trees.walk_sizes(self.survey, root) for root in roots]
            self._witnesses[name] = IndexEvidence(self.survey, self.catalog, name, copies)
        return self._witnesses[name]

    def orphan_judge(self, name: str) -> OrphanJudge:
        """The judge of orphan pages that look like pages of this table."""
        if name in self._juries:
            return self._juries[name]
        stand = self.tables[name]
        parents = {
            child: keys
            for child, parent, column in stand.layout.foreign_keys
            if parent in self.tables and (keys := self.evidence(parent).keys(column)) is not None
        }
        witness = self.evidence(name)
        self._juries[name] = OrphanJudge(self.survey, witness, stand.layout, stand.linked, parents)
        return self._juries[name]

    @property
    def highest(self) -> dict[str, int]:
        """By table: the highest rowid that the evidence names."""
        rowids = {name: evidence.rowids for name, evidence in self._witnesses.items()}
        return {name: ids[-1] for name, ids in rowids.items() if ids}


def assign_leaves(survey: Survey, catalog: SalvagedCatalog, blueprint: Blueprint) -> AssignedPages:
    """Find the leaves of each table of the file and of the release."""
    forest = AssignedPages(survey, catalog)
    known = _known_tables(forest, blueprint)
    claimed = bytearray(survey.image.count + 1)
    for page in catalog.pages:
        claimed[page] = 1
    copying = {name for names in forest.copies.values() for name in names}
    for name, layouts in known.items():
        root = catalog.root(name)
        tree = trees.walk_table(survey, root) if root > 1 else Tree(gaps=[(LOWEST, HIGHEST)])
        # Shadow tables with copies declare no types, so their layout would fit any table.
        live = catalog.layouts.get(name) if name not in copying else None
        layout = live or _vote(survey, tree, layouts)
        rooted = bool(tree.leaves) and _trusted(survey, tree, layout)
        if not rooted:
            tree = Tree(gaps=[(LOWEST, HIGHEST)])
        for page in [leaf.page for leaf in tree.leaves] + list(tree.seen):
            claimed[page] = 1
        stand = TablePages(layout, tree, rooted, damaged=not rooted or not tree.whole)
        stand.linked = Tree(list(tree.leaves), list(tree.gaps))
        forest.tables[name] = stand
    if any(stand.damaged for stand in forest.tables.values()):
        _adopt(forest, claimed)
    return forest


def _known_tables(forest: AssignedPages, blueprint: Blueprint) -> dict[str, Sequence[Layout]]:
    """The possible layouts of all tables; notes which shadow tables belong to which table."""
    known: dict[str, Sequence[Layout]] = dict(expected_layouts(blueprint))
    for index in parse_indexes(blueprint.virtual, blueprint.triggers):
        content = index.name + "_content"
        if not index.external:
            known[content] = [content_layout(content)]
            if index.columns:
                forest.copies.setdefault(index.table, []).append(content)
        if index.table:
            forest.sizes.setdefault(index.table, []).append(index.name + "_docsize")
    hidden = shadow_tables(blueprint.virtual)
    for name, layout in forest.catalog.layouts.items():
        if name not in known and name not in hidden and layout.plain:
            known[name] = [layout]
    return known


def _trusted(survey: Survey, tree: Tree, layout: Layout) -> bool:
    """Whether at least half of the sampled rows under a root fit its table; none is fine."""
    rows = _sample(survey, [leaf.page for leaf in tree.leaves])
    return 2 * sum(row_fit.fits(layout, row) for row in rows) >= len(rows)


def _vote(survey: Survey, tree: Tree, layouts: Sequence[Layout]) -> Layout:
    """The layout that the records fit best."""
    if len(layouts) == 1:
        return layouts[0]
    pages: Iterable[int] = [leaf.page for leaf in tree.leaves]
    if not tree.leaves:
        pages = (n for n in range(2, survey.image.count + 1) if survey.kinds[n] == LEAF)
    rows = [row for row in _sample(survey, list(pages), 1000, 4) if len(row.kinds) > 2]
    return max(layouts, key=lambda layout: sum(row_fit.score(layout, row) for row in rows))


def _sample(
    survey: Survey, pages: Sequence[int], max_pages: int = SAMPLE, each: int = 12
) -> list[Row]:
    """A sample of rows of these pages, without their overflow pages."""
    rows: list[Row] = []
    for page in pages[:: max(1, len(pages) // max_pages)]:
        for place, row in enumerate(survey.rows(page, whole=False)):
            if place >= each:
                break
            rows.append(row)
    return rows


def _adopt(forest: AssignedPages, claimed: bytearray) -> None:
    """Assign leaves that no page points to to the damaged tables that their rows fit.

    A page that is in no b-tree is free or has lost its parent. The freelist decides, as far as it
    is readable, and the evidence about its rows.
    """
    survey = forest.survey
    free, complete = _read_freelist(survey.image)
    groups: dict[int, list[int]] = defaultdict(list)
    for page in range(2, survey.image.count + 1):
        if survey.kinds[page] != LEAF or claimed[page]:
            continue
        if complete and free[page]:
            forest.skipped_leaves += 1
            continue
        top = survey.top(page)
        groups[page if claimed[top] else top].append(page)
    # Shadow tables of virtual tables declare no types, so any page would fit them.
    copying = {name for names in forest.copies.values() for name in names}
    aloof = shadow_tables(forest.catalog.virtual, SHADOW_SUFFIXES) - copying
    layouts = [stand.layout for name, stand in forest.tables.items() if name not in aloof]
    adopted: dict[str, list[Leaf]] = defaultdict(list)
    for top, pages in groups.items():
        name = _owner(forest, layouts, pages)
        if name is None:
            continue
        stand = forest.tables[name]
        for leaf in _ranged(survey, top, pages):
            if name in copying:  # used only for the text of rows that are known from elsewhere
                verdict = OrphanVerdict(unknown=not free[leaf.page])
            else:
                judge = forest.orphan_judge(name)
                verdict = judge.judge(leaf.page, in_freelist=bool(free[leaf.page]))
            if verdict.live:
                adopted[name].append(leaf)
                stand.unknown_rows += 0 if complete else verdict.unknown
            elif verdict.named:
                adopted[name].append(leaf)
                stand.freed_leaves.add(leaf.page)
            else:
                forest.skipped_leaves += 1
    for name, leaves in adopted.items():
        _settle(forest.tables[name], leaves)


def _owner(forest: AssignedPages, layouts: Sequence[Layout], pages: Sequence[int]) -> str | None:
    """The damaged table that these rows belong to; None if they fit no damaged table."""
    votes: dict[str, float] = defaultdict(float)
    for page in pages[:: max(1, len(pages) // SAMPLE)]:
        names = row_fit.best_tables(layouts, _sample(forest.survey, [page]))
        for name in names:
            votes[name] += 1 / len(names)
    if not votes:
        return None
    most = max(votes.values())
    equal = [name for name, count in votes.items() if count >= most - 1e-9]
    # Two full-text copies of the same text look the same: prefer a damaged one.
    equal.sort(key=lambda name: not forest.tables[name].damaged)
    return equal[0] if forest.tables[equal[0]].damaged else None


def _ranged(survey: Survey, top: int, pages: Sequence[int]) -> list[Leaf]:
    """Orphan leaves, each with the range of rowids that it covers."""
    ranges: dict[int, Leaf] = {}
    if top not in pages:
        ranges = {leaf.page: leaf for leaf in trees.walk_table(survey, top).leaves}
    leaves = []
    for page in pages:
        ids = survey.rowids(page)
        if not ids:
            continue
        leaf = ranges.get(page) or Leaf(page)
        # At the edges of an orphaned subtree only the rows themselves limit a leaf.
        low = leaf.low if leaf.low != LOWEST else min(ids) - 1
        high = leaf.high if leaf.high != HIGHEST else max(ids)
        leaves.append(Leaf(page, low, high))
    return leaves


def _settle(stand: TablePages, leaves: list[Leaf]) -> None:
    """Add adopted leaves to the tree and close its gaps; a freed leaf closes none."""
    stand.tree.leaves.extend(sorted(leaves, key=lambda leaf: (leaf.low, leaf.high)))
    leaves = [leaf for leaf in stand.tree.leaves if leaf.page not in stand.freed_leaves]
    leaves = leaves[len(stand.linked.leaves) :]
    lows = [leaf.low for leaf in leaves]
    gaps = []
    for low, high in stand.tree.gaps:
        reach = low
        for place in range(max(0, bisect_left(lows, low) - 1), len(leaves)):
            leaf = leaves[place]
            if leaf.low >= high:
                break
            if leaf.high <= reach:
                continue
            if leaf.low > reach:
                gaps.append((reach, leaf.low))
            reach = max(reach, leaf.high)
        if reach < high:
            gaps.append((reach, high))
    stand.tree.gaps = gaps


def _read_freelist(image: DamagedFile) -> tuple[bytearray, bool]:
    """A flag for each free page, whose rows were deleted, and whether the list is complete.

    It is complete if it has as many pages as the header says. Only then is it proven that a page
    that is in no b-tree and not on the list has lost its parent.
    """
    free = bytearray(image.count + 1)
    first = image.page(1)
    trunk, claimed = struct.unpack_from(">2I", first, 32)
    sane = first[21:24] == b"\x40\x20\x20" or first[:16] == MAGIC
    counted = 0
    most = (image.usable - 8) // 4
    while sane and 1 < trunk <= image.count and not free[trunk]:
        page = image.page(trunk)
        following, leaves = struct.unpack_from(">2I", page)
        if leaves > most:
            return free, False
        free[trunk] = 1
        counted += 1
        for number in struct.unpack_from(f">{leaves}I", page, 8):
            if 1 < number <= image.count and not free[number]:
                free[number] = 1
                counted += 1
        trunk = following
    return free, sane and counted == claimed and trunk == 0
