"""Repair damaged texts with the copies that full-text tables keep."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.sqlite.cells import (
    LOST,
    PARSE_ERRORS,
    LostValue,
    ReplacedText,
    Row,
    Value,
    kinds_of,
)
from hermes_doctor.sqlite.salvage.trees import ByRowid


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
        raw = [
            part.raw
            if isinstance(part, ReplacedText)
            else part.encode()
            if isinstance(part, str)
            else b""
            for part in parts
        ]
        mine = b" ".join(raw)
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
        changed = [
            (place, value)
            for place, value in texts
            if row.values[place] is LOST or row.values[place] != value
        ]
        for place, value in changed:
            row.values[place] = value
        return True
