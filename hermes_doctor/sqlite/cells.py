"""Cells and records of pages that may hold anything: what can be read of them, and what not."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.sqlite.records import Value

LEAF, INTERIOR, INDEX_LEAF, INDEX_INTERIOR = 13, 5, 10, 2
BROKEN = (IndexError, ValueError, struct.error)
"""What reading a damaged page raises; always caught a cell at a time."""
ROW_LIMIT = 256 * 1024 * 1024
SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)


class Lost:
    """A value that lay on a page which is gone; only its kind is known."""

    def __repr__(self) -> str:
        return "LOST"


LOST = Lost()


class Cell(NamedTuple):
    """What lies on a leaf for one row."""

    rowid: int
    payload: bytes
    """As much of it as was found."""
    length: int
    """What it should be."""
    frayed: bool = False


@dataclass(slots=True)
class Row:
    """One row as far as it could be read."""

    rowid: int
    kinds: list[int]
    """The serial type of each column: it tells the length even of a value that is gone."""
    values: list[Value | Lost]
    whole: bool = True
    rest: bytes = b""
    """What is left of the first value that is LOST."""

    frayed: bool = False
    """The last page of its chain points on, as none does: it may be another row's."""

    def length(self, place: int) -> int:
        """The bytes of a text, also of one that is LOST."""
        kind = self.kinds[place] if place < len(self.kinds) else 0
        return (kind - 12) >> 1 if kind >= 12 else 0


def head(page: bytes, at: int, usable: int) -> tuple[int, tuple[int, ...]] | None:
    """The kind of a b-tree page and where its cells lie; None when it is no such page."""
    kind = page[at]
    if kind not in (13, 10, 5, 2):
        return None
    free, cells, content, fragments = struct.unpack_from(">HHHB", page, at + 1)
    start = at + (8 if kind > 5 else 12)
    content = content or 65536
    if (
        fragments > 60
        or start + 2 * cells > usable
        or content > usable
        or content < start + 2 * cells
        or free >= usable
        or (cells == 0 and kind <= 5)
    ):
        return None
    return kind, struct.unpack_from(f">{cells}H", page, start)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """SQLite's variable-length integer, and where the next byte stands."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for n in range(at + 1, at + 8):
        byte = data[n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, n + 1
    return value << 8 | data[at + 8], at + 9


def signed(value: int) -> int:
    """A rowid is stored as an unsigned number."""
    return value - (1 << 64) if value >= 1 << 63 else value


def local(length: int, usable: int, *, index: bool) -> int:
    """How many bytes of a payload lie on the page itself."""
    most = (usable - 12) * 64 // 255 - 23 if index else usable - 35
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    here = least + (length - least) % (usable - 4)
    return here if here <= most else least


def kinds_of(payload: bytes) -> tuple[list[int], int]:
    """The serial types of a record, and where its values begin."""
    length, at = varint(payload, 0)
    if not at <= length <= len(payload):
        raise ValueError("the head of the record is longer than the record")
    raw = payload[at:length]
    if raw.isascii():
        kinds = list(raw)
    else:
        kinds, value = [], 0
        for byte in raw:
            if byte < 0x80:
                kinds.append(value << 7 | byte)
                value = 0
            else:
                value = value << 7 | byte & 0x7F
        if value or max(kinds, default=0) > 2 * ROW_LIMIT + 13:
            raise ValueError("the head of the record does not end where it says")
    if 10 in kinds or 11 in kinds:
        raise ValueError("a serial type that is never written")
    return kinds, length


def values_of(payload: bytes, kinds: list[int], at: int, *, whole: bool) -> list[Value | Lost]:
    """The values of a record; those past the end of a payload that was cut off are LOST."""
    values: list[Value | Lost] = []
    end = len(payload)
    for kind in kinds:
        if kind >= 12:
            stop = at + ((kind - 12) >> 1)
            if stop > end:
                values.append(LOST)
            elif kind & 1:
                values.append(text(payload[at:stop]))
            else:
                values.append(payload[at:stop])
            at = stop
        elif kind == 0:
            values.append(None)
        elif kind >= 8:
            values.append(kind - 8)
        else:
            stop = at + SIZES[kind]
            if stop > end:
                values.append(LOST)
            elif kind == 7:
                values.append(float(struct.unpack_from(">d", payload, at)[0]))
            else:
                values.append(int.from_bytes(payload[at:stop], "big", signed=True))
            at = stop
    if whole and at != end:
        raise ValueError("the record is not as long as its head says")
    return values


def remainder(payload: bytes, kinds: list[int], at: int) -> bytes:
    """The beginning of the value that a payload breaks off in."""
    for kind in kinds:
        size = (kind - 12) >> 1 if kind >= 12 else SIZES[kind]
        if at + size > len(payload):
            return payload[at:]
        at += size
    return b""


class Mangled(str):
    """Text some bytes of which are no text: replaced, since Hermes cannot read it otherwise."""

    raw: bytes
    """As it is stored."""


class Raw(bytes):
    """The same, to be stored as it was."""

    __slots__ = ()


def text(raw: bytes) -> str:
    """Text as stored, or what can be read of it."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        mangled = Mangled(raw.decode("utf-8", "replace"))
        mangled.raw = raw
        return mangled
