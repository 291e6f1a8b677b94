"""Find the key ranges in which a damaged index is complete.

An index is sorted by its keys. Between two adjacent entries there was no third, so a row whose key
would be between them was deleted or never written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from hermes_doctor.sqlite.cells import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    PARSE_ERRORS,
    LostValue,
    ReplacedText,
    kinds_of,
    values_of,
)
from hermes_doctor.sqlite.records import Value
from hermes_doctor.sqlite.salvage.survey import DEEPEST, Survey

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
        kinds, at = kinds_of(payload)
        values = values_of(payload, kinds, at, whole=True)
    except PARSE_ERRORS:
        return None
    return sort_key(values) if len(values) == width else None
