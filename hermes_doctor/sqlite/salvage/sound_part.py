"""Cut a row where its bytes cannot be those that were stored, for example on a foreign page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_doctor.sqlite.cells import LOST, SIZES, Cell, ReplacedText, Row, kinds_of, local_size
from hermes_doctor.sqlite.salvage.layouts import Layout
from hermes_doctor.sqlite.salvage.partial_rows import PROSE
from hermes_doctor.sqlite.salvage.row_fit import EPOCH

SECTOR = 512
"""A disk writes at least this much at once, so damage starts at a multiple of it."""
FEW = 3
"""Invalid bytes on one page up to this number are flipped bits; the text around them is right."""
SHORTEST = 64
"""Fewer zeros than this can be part of a text."""
_INVALID = re.compile("[\udc80-\udcff]")
_ZEROS = re.compile(rb"\0{%d,}" % SHORTEST)


class _Pieces:
    """The parts of a payload: the first is on the leaf, each other on one overflow page."""

    def __init__(self, cell: Cell, usable: int) -> None:
        self.here = local_size(cell.length, usable, index=False)
        self.size = usable - 4
        self.end = len(cell.payload)

    def start(self, at: int) -> int:
        """The offset of the part that contains this byte."""
        return at if at < self.here else at - (at - self.here) % self.size

    def sector(self, at: int) -> int:
        """The offset of the sector that contains this byte; on a leaf the byte itself."""
        if at < self.here:
            return at
        start = self.start(at)
        return max(start, start - 4 + (at - start + 4) // SECTOR * SECTOR)

    def number(self, at: int) -> int:
        """Which part contains this byte; 0 is the leaf."""
        return 0 if at < self.here else 1 + (at - self.here) // self.size


def sound_part(
    layout: Layout, cell: Cell, row: Row, usable: int, *, confirmed: bool = False
) -> Row | None:
    """The row without what cannot be right; None if nothing speaks against it.

    `confirmed` means that a copy of its text agrees, whatever its overflow pages look like.
    """
    if not _suspicious(cell, row, usable):
        return None
    pieces = _Pieces(cell, usable)
    kinds, at = kinds_of(cell.payload)
    spans = list(_spans(kinds, at))
    numbers = {n: v for n, v in enumerate(row.values) if isinstance(v, float) and kinds[n] == 7}
    timed = {pieces.number(spans[n][1] - 1) for n, v in numbers.items() if _is_time(v)}
    odd = [n for n, value in numbers.items() if _is_odd(value)]
    cuts = [pieces.start(spans[n][1] - 1) for n in odd if pieces.number(spans[n][1] - 1)]
    last = pieces.number(pieces.end - 1)
    if row.bad_overflow and not confirmed and last not in timed:
        cuts.append(pieces.start(pieces.end - 1))
    for place, (start, stop) in enumerate(spans):
        if kinds[place] >= 13 and kinds[place] & 1 and start < pieces.end:
            prose = layout.columns[place].name in PROSE
            raw = cell.payload[start:stop]
            cuts += [
                pieces.sector(bad)
                for bad in _damage(raw, start, pieces)
                if prose or pieces.number(bad)
            ]
    if not cuts and not odd:
        return None
    cut = min(cuts, default=pieces.end)
    values = list(row.values)
    first = -1
    for place, (start, stop) in enumerate(spans):
        if stop <= cut or start == stop:
            continue
        if first < 0:
            first = place
        elif pieces.number(start) in timed | {0} and pieces.number(stop - 1) in timed | {0}:
            continue  # what follows the damage on a page with a right time is right
        values[place] = LOST
    for place in odd:
        values[place] = LOST
    rest = cell.payload[spans[first][0] : cut] if first >= 0 else b""
    if first < 0 or values.index(LOST) != first:
        rest = b""
    return Row(row.rowid, row.kinds, values, False, rest)


def _suspicious(cell: Cell, row: Row, usable: int) -> bool:
    """A quick test that most rows end with."""
    if not row.whole or row.bad_overflow or cell.length > usable - 35:
        return True
    return any(
        type(value) is ReplacedText or (type(value) is float and _is_odd(value))
        for value in row.values
    )


def _spans(kinds: list[int], at: int) -> Iterator[tuple[int, int]]:
    """The first byte and the end of each value in the payload."""
    for kind in kinds:
        size = (kind - 12) >> 1 if kind >= 12 else SIZES[kind]
        yield at, at + size
        at += size


def _is_odd(value: float) -> bool:
    """Whether no one stores this number: not a number, or far too large or small."""
    return not (value == 0 or 1e-30 < abs(value) < 1e30)


def _is_time(value: float) -> bool:
    return EPOCH[0] < value < EPOCH[1]


def _damage(raw: bytes, start: int, pieces: _Pieces) -> Iterator[int]:
    """The offsets in the payload at which the text cannot be right."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        yield from _invalid(raw, start, pieces)
    for zeros in _ZEROS.finditer(raw):
        at = start + zeros.start()
        if pieces.number(at) and (zeros.end() - zeros.start() >= SECTOR or zeros.end() == len(raw)):
            yield at


def _invalid(raw: bytes, start: int, pieces: _Pieces) -> Iterator[int]:
    """The first invalid byte of each page that has more than a few."""
    places: dict[int, list[int]] = {}
    text, at, done = raw.decode("utf-8", "surrogateescape"), start, 0
    for character in _INVALID.finditer(text):
        at += len(text[done : character.start()].encode("utf-8", "surrogateescape"))
        done = character.start()
        places.setdefault(pieces.number(at), []).append(at)
    yield from (each[0] for each in places.values() if len(each) > FEW)
