"""Parse the cells and records of b-tree pages that may be damaged."""

from __future__ import annotations

import struct

from hermes_doctor.core.lazy import NamedTuple

Value = None | int | float | str | bytes
LEAF, INTERIOR, INDEX_LEAF, INDEX_INTERIOR = 13, 5, 10, 2
PARSE_ERRORS = (IndexError, ValueError, struct.error)
"""The exceptions that parsing a damaged page raises; callers catch them for each cell."""
ROW_LIMIT = 256 * 1024 * 1024
SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)


class LostValue:
    """The type of `LOST`: a value whose page is missing; only its serial type is known."""

    def __repr__(self) -> str:
        return "LOST"


LOST = LostValue()


class Cell(NamedTuple):
    """One cell of a table leaf: the rowid and the payload of a row."""

    rowid: int
    payload: bytes
    """The bytes that were found."""
    length: int
    """The length that the cell declares."""
    bad_overflow: bool = False


class Row(NamedTuple):
    """One decoded row; values that could not be read are `LOST`."""

    rowid: int
    kinds: list[int]
    """The serial type of each column, which gives the length even of a lost value."""
    values: list[Value | LostValue]
    whole: bool = True
    rest: bytes = b""
    """The remaining first bytes of the first value that is LOST."""

    bad_overflow: bool = False
    """Its last overflow page has a next page, which is invalid: it may belong to another row."""

    def length(self, column: int) -> int:
        """The length in bytes of a text or blob, also of a LOST one."""
        kind = self.kinds[column] if column < len(self.kinds) else 0
        return (kind - 12) >> 1 if kind >= 12 else 0


def page_header(page: bytes, offset: int, usable: int) -> tuple[int, tuple[int, ...]] | None:
    """The type of a b-tree page and its cell offsets; None if it is not a b-tree page."""
    kind = page[offset]
    if kind not in (13, 10, 5, 2):
        return None
    free, cells, content, fragments = struct.unpack_from(">HHHB", page, offset + 1)
    start = offset + (8 if kind > 5 else 12)
    content = content or 65536
    if (
        fragments > 60
        or start + 2 * cells > usable
        or content > usable
        or content < start + 2 * cells
        or free >= usable
        or (cells == 0 and kind <= 5 and not offset)  # the first page may have no room for one
    ):
        return None
    return kind, struct.unpack_from(f">{cells}H", page, start)


def children_of(page: bytes, offset: int, cells: tuple[int, ...]) -> list[int]:
    """The children of an interior page, whose header is at `offset`."""
    return [struct.unpack_from(">I", page, at)[0] for at in (*cells, offset + 8)]


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode SQLite's variable-length integer; also return the offset after it."""
    byte = data[offset]
    if byte < 0x80:
        return byte, offset + 1
    value = byte & 0x7F
    for n in range(offset + 1, offset + 8):
        byte = data[n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, n + 1
    return value << 8 | data[offset + 8], offset + 9


def to_signed(value: int) -> int:
    """Convert an unsigned 64-bit varint to the signed rowid that it encodes."""
    return value - (1 << 64) if value >= 1 << 63 else value


def local_size(length: int, usable: int, *, index: bool) -> int:
    """How many bytes of a payload are stored on the page itself, not on overflow pages."""
    most = (usable - 12) * 64 // 255 - 23 if index else usable - 35
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    here = least + (length - least) % (usable - 4)
    return here if here <= most else least


def kinds_of(payload: bytes) -> tuple[list[int], int]:
    """The serial types of a record, and the offset at which its values start."""
    length, at = varint(payload, 0)
    if not at <= length <= len(payload):
        raise ValueError("the header of the record is longer than the record")
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
            raise ValueError("the header of the record does not end where it says")
    if 10 in kinds or 11 in kinds:
        raise ValueError("a serial type that is never written")
    return kinds, length


def values_of(
    payload: bytes, kinds: list[int], offset: int, *, whole: bool
) -> list[Value | LostValue]:
    """The values of a record; values past the end of a truncated payload are LOST."""
    values: list[Value | LostValue] = []
    end = len(payload)
    for kind in kinds:
        if kind >= 12:
            stop = offset + ((kind - 12) >> 1)
            if stop > end:
                values.append(LOST)
            elif kind & 1:
                values.append(text(payload[offset:stop]))
            else:
                values.append(payload[offset:stop])
            offset = stop
        elif kind == 0:
            values.append(None)
        elif kind >= 8:
            values.append(kind - 8)
        else:
            stop = offset + SIZES[kind]
            if stop > end:
                values.append(LOST)
            elif kind == 7:
                values.append(float(struct.unpack_from(">d", payload, offset)[0]))
            else:
                values.append(int.from_bytes(payload[offset:stop], "big", signed=True))
            offset = stop
    if whole and offset != end:
        raise ValueError("the record is not as long as its header says")
    return values


def record(payload: bytes) -> list[Value | LostValue]:
    """The values of a complete record."""
    kinds, offset = kinds_of(payload)
    return values_of(payload, kinds, offset, whole=True)


def truncated_value(payload: bytes, kinds: list[int], offset: int) -> bytes:
    """The available bytes of the value in which a truncated payload ends."""
    for kind in kinds:
        size = (kind - 12) >> 1 if kind >= 12 else SIZES[kind]
        if offset + size > len(payload):
            return payload[offset:]
        offset += size
    return b""


class ReplacedText(str):
    """Text with invalid UTF-8 bytes replaced, because Hermes cannot read it otherwise."""

    raw: bytes
    """The bytes as stored."""


class RawText(bytes):
    """Text with invalid UTF-8 that is written back byte for byte."""

    __slots__ = ()


def text(raw: bytes) -> str:
    """Decode stored text; return a `ReplacedText` if it is not valid UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        mangled = ReplacedText(raw.decode("utf-8", "replace"))
        mangled.raw = raw
        return mangled
