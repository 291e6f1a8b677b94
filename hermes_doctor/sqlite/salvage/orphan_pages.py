"""Pages that nothing leads to: whether they lost their parent, or were given back.

A page that SQLite has given back still holds rows as they were at that time. They live on
elsewhere, or were deleted since. One row that is proved not to be where it lies convicts the
whole page.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hermes_doctor.sqlite.cells import Lost, Mangled, Row
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.catalog import Layout
from hermes_doctor.sqlite.salvage.index_evidence import Witness
from hermes_doctor.sqlite.salvage.survey import HIGHEST, Survey, decode
from hermes_doctor.sqlite.salvage.trees import Tree


@dataclass
class Verdict:
    """What the rows of a page came to."""

    named: int = 0
    """Rows that an index, or what full text keeps, still names."""
    dead: int = 0
    """Rows that cannot be there."""
    unproven: int = 0
    """Rows of which nothing is left that could say."""

    @property
    def live(self) -> bool:
        """Whether the page is still the table's."""
        return not self.dead and bool(self.named or self.unproven)


class Jury:
    """Judges the pages that look like those of one table."""

    def __init__(
        self,
        survey: Survey,
        witness: Witness,
        layout: Layout,
        linked: Tree,
        parents: Mapping[str, Collection[Value]],
    ) -> None:
        self.survey = survey
        self.witness = witness
        self.layout = layout
        self.linked = linked
        self.parents = parents
        """By column: all values that it can have, where a whole index tells them."""
        self.lows = [leaf.low for leaf in linked.leaves]

    def judge(self, page: int, *, listed: bool) -> Verdict:
        """A page; `listed` when what is left of the list of free pages has it."""
        verdict = Verdict()
        for cell in self.survey.cells(page, whole=False):
            if self.witness.names(cell.rowid):
                verdict.named += 1
                continue
            if listed or self._elsewhere(cell.rowid) or self.witness.denies(cell.rowid):
                verdict.dead += 1
                continue
            row = decode(cell)
            dead = row is not None and self.denies(cell.rowid, self._known(cell.rowid, row))
            verdict.dead += dead
            verdict.unproven += row is not None and not dead
        return verdict

    def _elsewhere(self, rowid: int) -> bool:
        """Whether a leaf that the root leads to would have the row.

        Above the last row of the last leaf nothing is certain: when a checkpoint was torn, the
        leaf that came after it is there and the page that leads to it is not.
        """
        place = bisect_right(self.lows, rowid - 1) - 1
        if place < 0 or self.linked.lost(rowid):
            return False
        leaf = self.linked.leaves[place]
        if rowid > leaf.high:
            return False
        return leaf.high != HIGHEST or rowid <= max(self.survey.edges(leaf.page), default=rowid)

    def _known(self, rowid: int, row: Row) -> dict[str, Value | Lost]:
        known = dict(zip(self.layout.names, row.values, strict=False))
        if self.layout.rowid_column is not None:
            known[self.layout.names[self.layout.rowid_column]] = rowid
        return known

    def denies(self, rowid: int, known: Mapping[str, Value | Lost]) -> bool:
        """Whether an index without a gap in that place lacks the row, or what it refers to."""
        for column, keys in self.parents.items():
            value = known.get(column)
            if value is not None and not isinstance(value, Lost | Mangled) and value not in keys:
                return True
        return self.witness.lacks(rowid, known)
