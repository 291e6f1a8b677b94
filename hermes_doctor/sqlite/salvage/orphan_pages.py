"""Decide whether a page that no b-tree points to was orphaned by damage or freed.

A freed page still contains rows as they were at that time. These rows were moved to another page
or deleted. If one row of a page provably does not belong there, the whole page was freed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hermes_doctor.sqlite.cells import LostValue, ReplacedText, Row
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.index_evidence import IndexEvidence
from hermes_doctor.sqlite.salvage.survey import HIGHEST, Survey, decode
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


class OrphanJudge:
    """Judges orphan pages that look like pages of one table."""

    def __init__(
        self,
        survey: Survey,
        evidence: IndexEvidence,
        layout: Layout,
        linked: Tree,
        parents: Mapping[str, Collection[Value]],
    ) -> None:
        self.survey = survey
        self.evidence = evidence
        self.layout = layout
        self.linked = linked
        self.parents = parents
        """By foreign key column: all values that it can have, if a complete index lists them."""
        self.lows = [leaf.low for leaf in linked.leaves]

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
            dead = row is not None and self.denies(cell.rowid, self._known(cell.rowid, row))
            verdict.foreign += dead
            verdict.unknown += row is not None and not dead
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

    def _known(self, rowid: int, row: Row) -> dict[str, Value | LostValue]:
        known = dict(zip(self.layout.names, row.values, strict=False))
        if self.layout.rowid_column is not None:
            known[self.layout.names[self.layout.rowid_column]] = rowid
        return known

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
