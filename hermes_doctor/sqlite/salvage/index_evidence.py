"""Determine from its indexes which rows a damaged table had.

SQLite writes an index in the same transaction as its table. So an entry proves that a row existed
when the file was last sound, and a complete index proves which rows did not exist.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice

from hermes_doctor.sqlite.cells import LostValue
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage import trees
from hermes_doctor.sqlite.salvage.catalog import Index, SalvagedCatalog
from hermes_doctor.sqlite.salvage.spans import CompleteRanges, sort_key
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.salvage.trees import Tree

MOST = 10_000_000
"""The most rows that an index may name; one with more is not trusted."""


class IndexEvidence:
    """The rowids that the indexes of one table name."""

    def __init__(
        self, survey: Survey, catalog: SalvagedCatalog, table: str, copies: Sequence[Tree] = ()
    ) -> None:
        self.survey = survey
        self.copies = copies
        self.indexes = [one for one in catalog.indexes if one.table == table]
        self.walks = {one.name: trees.walk_index(survey, one.root) for one in self.indexes}
        full = [one for one in self.indexes if not one.partial]
        sound = [one for one in full if self.walks[one.name].whole]
        self.whole = bool(sound)
        """At least one index is complete, so it names every row."""
        self.known = bool(full) or any(tree.leaves for tree in copies)
        ids = array("q")
        for one in full:  # all indexes, because one may lack entries that others have
            ids.extend(islice((rowid for _, rowid in self.entries(one)), MOST))
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
            full = [one for one in self.indexes if not one.partial]
            self._spans = [
                (one, CompleteRanges(self.survey, one.root, len(one.columns) + 1)) for one in full
            ]
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
                found = frozenset(
                    values[0]
                    for values, _ in self.entries(index)
                    if not isinstance(values[0], LostValue)
                )
                return found if self.whole else None
        return None


def contains(ids: array[int], rowid: int) -> bool:
    """Whether a sorted array contains this number."""
    place = bisect_left(ids, rowid)
    return place < len(ids) and ids[place] == rowid
