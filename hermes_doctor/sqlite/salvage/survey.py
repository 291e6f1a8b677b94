"""Scan all pages once for their types and parents, and read rows from any of them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from hermes_doctor.sqlite.pages import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    LEAF,
    LOST,
    PARSE_ERRORS,
    ROW_LIMIT,
    Cell,
    Row,
    first_byte,
    kinds_of,
    local_size,
    page_header,
    to_signed,
    truncated_value,
    values_of,
    varint,
)
from hermes_doctor.sqlite.salvage.image import DamagedFile

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
BLANK = 1
"""The type we give to a page of zeros; no b-tree page has it."""
DEEPEST = 40
DISPUTES = 1000
"""The most overflow pages claimed by two rows that are examined."""
NOTHING = Cell(LOWEST, b"", 0)


@dataclass(slots=True)
class Leaf:
    """A page of a table and the rowids that its parents allow: above `low`, up to `high`."""

    page: int
    low: int = LOWEST
    high: int = HIGHEST


class Survey:
    """The types and parents of all pages, with methods to read their rows.

    It keeps a few bytes per page. Every overflow page belongs to one row; a second row that claims
    it is damaged. That also limits the time that forged overflow chains can take.
    """

    def __init__(self, image: DamagedFile, progress: Callable[[int], None] | None = None) -> None:
        self.image = image
        self.usable = image.usable
        self.claimed = image.claimed
        self.kinds = bytearray(image.count + 1)
        self.parent = array("I", bytes(4 * (image.count + 1)))
        self.owner = array("Q", bytes(8 * (image.count + 1)))
        self.disputed: dict[int, int] = {}
        """By overflow page that two cells claim: the cell that was read first."""
        zeros = bytes(image.page_size)
        for number, page in image.pages():
            header = page_header(page, first_byte(number), self.usable)
            if header is None:
                self.kinds[number] = BLANK if page == zeros else 0
            elif header[0] in (LEAF, INDEX_LEAF):
                self.kinds[number] = header[0]
            else:
                self._interior(number, page, header)
            if progress and not number % 4096:
                progress(number)

    def _read(self, number: int) -> tuple[bytes, int, tuple[int, ...]]:
        """One page, its kind and the offsets of its cells; 0 and none if it has no cells."""
        page = self.image.page(number)
        return page, *(page_header(page, first_byte(number), self.usable) or (0, ()))

    def _interior(self, number: int, page: bytes, header: tuple[int, tuple[int, ...]]) -> None:
        kind, cells = header
        children = [child for child, _ in self._children(number, page, cells)]
        good = [child for child in children if 1 < child <= self.claimed]
        if 2 * len(good) < len(children):
            return
        self.kinds[number] = kind
        for child in good:
            if child <= self.image.count:
                self.parent[child] = self.parent[child] or number

    def _children(
        self, number: int, page: bytes, cells: tuple[int, ...]
    ) -> Iterator[tuple[int, int]]:
        """The children of an interior page, each with the offset of its key; 0 for the last."""
        for at in cells:
            if at + 5 <= self.usable:
                yield struct.unpack_from(">I", page, at)[0], at + 4
            else:
                yield 0, 0
        yield struct.unpack_from(">I", page, first_byte(number) + 8)[0], 0

    def children(self, leaf: Leaf) -> list[Leaf]:
        """The children of an interior page of a table, with the rowids that each may contain."""
        below: list[tuple[int, int | None]] = []
        highest = leaf.low
        page, kind, cells = self._read(leaf.page)
        for child, at in self._children(leaf.page, page, cells) if kind else ():
            key = None
            if at:
                with suppress(*PARSE_ERRORS):
                    key = to_signed(varint(page, at)[0])
            if key is not None and not highest < key < leaf.high:
                key = None  # keys ascend: this one is damaged
            highest = key if key is not None else highest
            below.append((child, key))
        ranged: list[Leaf] = []
        above = leaf.high
        for child, key in reversed(below):
            above = key if key is not None else above
            ranged.append(Leaf(child, LOWEST, above))
        ranged.reverse()
        low = leaf.low
        for child_leaf, (_, key) in zip(ranged, below, strict=True):
            child_leaf.low = low
            low = key if key is not None else low
        return ranged

    def index_children(self, number: int) -> list[int]:
        """The children of an interior page of an index."""
        page, kind, cells = self._read(number)
        return [child for child, _ in self._children(number, page, cells)] if kind else []

    def top(self, number: int) -> int:
        """The topmost ancestor of a page."""
        for _ in range(DEEPEST):
            if not self.parent[number]:
                break
            number = self.parent[number]
        return number

    def rowids(self, number: int) -> list[int]:
        """The rowids on a leaf, without reading its rows."""
        page, _, cells = self._read(number)
        return self._ids(page, cells)

    def edges(self, number: int) -> list[int]:
        """The first and the last rowid on a leaf."""
        page, _, cells = self._read(number)
        return self._ids(page, (cells[0], cells[-1]) if cells else ())

    @staticmethod
    def _ids(page: bytes, cells: tuple[int, ...]) -> list[int]:
        ids = []
        for at in cells:
            with suppress(*PARSE_ERRORS):
                ids.append(to_signed(varint(page, varint(page, at)[1])[0]))
        return ids

    def cells(self, number: int, *, whole: bool = True) -> Iterator[Cell]:
        """The cells of a table leaf, unreadable ones empty; overflow pages only if `whole`."""
        page, _, cells = self._read(number)
        for place, at in enumerate(cells):
            yield self._cell(page, at, (number << 16) + place, whole=whole)

    def cell(self, number: int, cell_number: int) -> Cell:
        """One cell of a table leaf, with its overflow pages."""
        page, _, cells = self._read(number)
        if cell_number >= len(cells):
            return NOTHING
        return self._cell(page, cells[cell_number], (number << 16) + cell_number, whole=True)

    def _cell(self, page: bytes, at: int, mark: int, *, whole: bool) -> Cell:
        try:
            length, body = varint(page, at)
            rowid, body = varint(page, body)
        except PARSE_ERRORS:
            return NOTHING
        payload, frayed = self._payload(page, body, length, mark, whole=whole)
        return Cell(to_signed(rowid), payload, length, frayed)

    def entries(self, number: int) -> Iterator[bytes]:
        """The complete payloads on a page of an index; that of a damaged entry is empty."""
        page, kind, cells = self._read(number)
        skip = 4 if kind == INDEX_INTERIOR else 0
        for place, at in enumerate(cells):
            try:
                length, body = varint(page, at + skip)
            except PARSE_ERRORS:
                yield b""
                continue
            mark = (number << 16) + place
            payload, _ = self._payload(page, body, length, mark, whole=True, index=True)
            yield payload if len(payload) == length else b""

    def _payload(
        self, page: bytes, body: int, length: int, mark: int, *, whole: bool, index: bool = False
    ) -> tuple[bytes, bool]:
        """The available part of a payload, and whether its last overflow page wrongly goes on."""
        usable = self.usable
        here = local_size(length, usable, index=index)
        if length > ROW_LIMIT or body + here > usable:
            return (page[body:usable] if length <= ROW_LIMIT else b""), False
        if here == length or not whole or body + here + 4 > usable:
            return page[body : body + here], False
        parts, got = [page[body : body + here]], here
        (following,) = struct.unpack_from(">I", page, body + here)
        seen: set[int] = set()
        while got < length and following not in seen:
            if not 1 < following <= self.image.count or self.kinds[following]:
                break  # outside the file, a page of zeros, or a b-tree page
            if self.owner[following] not in (0, mark):
                if len(self.disputed) < DISPUTES:
                    self.disputed[following] = self.owner[following]
                break
            self.owner[following] = mark
            seen.add(following)
            more = self.image.page(following)
            parts.append(more[4 : 4 + min(usable - 4, length - got)])
            got += len(parts[-1])
            (following,) = struct.unpack_from(">I", more)
        if got < length and len(parts) > 1 and self._impossible(following, seen):
            parts.pop()  # the page itself is wrong, not only where it points to
        return b"".join(parts), got == length and following != 0

    def _impossible(self, following: int, seen: set[int]) -> bool:
        """Whether no page of an unfinished chain can have this next page.

        A page just past the end is possible: the file may be truncated.
        """
        if following < 2 or following > 2 * self.claimed + 1000 or following in seen:
            return True
        return following <= self.image.count and self.parent[following] > 0

    def rows(self, number: int, *, whole: bool = True) -> Iterator[Row]:
        """The readable rows of a table leaf."""
        for cell in self.cells(number, whole=whole):
            row = decode(cell)
            if row is not None:
                yield row


def decode(cell: Cell) -> Row | None:
    """Decode the row in a cell; None if its record header is unreadable."""
    try:
        kinds, at = kinds_of(cell.payload)
        whole = len(cell.payload) == cell.length
        values = values_of(cell.payload, kinds, at, whole=whole)
    except PARSE_ERRORS:
        return None
    if whole or LOST not in values:
        return Row(cell.rowid, kinds, values, bad_overflow=cell.bad_overflow)
    return Row(cell.rowid, kinds, values, False, truncated_value(cell.payload, kinds, at))
