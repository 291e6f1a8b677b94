"""Read the rows of a table's b-tree, with overflow pages and the record format."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.pages import DatabasePages

Value = None | int | float | str | bytes
LEAF, INTERIOR = 0x0D, 0x05
ROW_LIMIT = 16 * 1024 * 1024


def rows(pages: DatabasePages, root: int, *, max_pages: int) -> Iterator[list[Value]]:
    """The rows of the table at page `root`; raises if it has more than `max_pages` pages."""
    return (row for _, row in rows_with_pages(pages, root, max_pages=max_pages))


def rows_with_pages(
    pages: DatabasePages, root: int, *, max_pages: int
) -> Iterator[tuple[int, list[Value]]]:
    """The same rows, each with the number of the leaf page that holds it."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        number = todo.pop()
        if number in seen or len(seen) >= max_pages:
            raise CouldNotLook(
                text("the tree at page {root} is too large or refers to itself", root=root)
            )
        seen.add(number)
        page = pages.read(number)
        start = 100 if number == 1 else 0
        kind = page[start]
        (cells,) = struct.unpack_from(">H", page, start + 3)
        head = start + (12 if kind == INTERIOR else 8)
        if kind not in (LEAF, INTERIOR) or head + 2 * cells > len(page):
            raise CouldNotLook(text("page {number} is not a page of a table", number=number))
        offsets = struct.unpack_from(f">{cells}H", page, head)
        if any(offset + 4 > len(page) for offset in offsets):
            raise CouldNotLook(text("page {number} is damaged", number=number))
        if kind == INTERIOR:
            (right,) = struct.unpack_from(">I", page, start + 8)
            children = [struct.unpack_from(">I", page, offset)[0] for offset in offsets]
            todo.extend(reversed([*children, right]))
        else:
            for offset in offsets:
                yield number, record(_payload(pages, page, offset))


def _payload(pages: DatabasePages, page: bytes, offset: int) -> bytes:
    """The whole payload of one leaf cell, its overflow pages included."""
    length, offset = varint(page, offset)
    _, offset = varint(page, offset)
    if length > ROW_LIMIT:
        raise CouldNotLook("a row claims to be larger than 16 MB")
    usable = pages.usable
    most = usable - 35
    if length <= most:
        return page[offset : offset + length]
    least = (usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (usable - 4)
    local = local if local <= most else least
    payload = page[offset : offset + local]
    if offset + local + 4 > len(page):
        raise CouldNotLook("a row ends outside of its page")
    (next_page,) = struct.unpack_from(">I", page, offset + local)
    while len(payload) < length and next_page:
        overflow = pages.read(next_page)
        payload += overflow[4 : min(usable, 4 + length - len(payload))]
        (next_page,) = struct.unpack_from(">I", overflow, 0)
    if len(payload) < length:
        raise CouldNotLook("a row is cut off")
    return payload


def record(payload: bytes) -> list[Value]:
    """The values of one row."""
    length, at = varint(payload, 0)
    body = length
    if length > len(payload):
        raise CouldNotLook("the header of a row is longer than the row")
    values: list[Value] = []
    while at < length:
        kind, at = varint(payload, at)
        value, size = _value(kind, payload, body)
        values.append(value)
        body += size
    return values


_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def _value(kind: int, payload: bytes, offset: int) -> tuple[Value, int]:
    if kind == 0:
        return None, 0
    if kind in (8, 9):
        return kind - 8, 0
    if kind in (10, 11):
        raise CouldNotLook("a row contains a value of an unknown type")
    size = _INTEGERS.get(kind) or (8 if kind == 7 else (kind - 12) // 2)
    raw = payload[offset : offset + size]
    if len(raw) < size:
        raise CouldNotLook("a row is cut off")
    if kind in _INTEGERS:
        return int.from_bytes(raw, "big", signed=True), size
    if kind == 7:
        return float(struct.unpack(">d", raw)[0]), size
    return (raw.decode("utf-8", "replace") if kind % 2 else raw), size


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode SQLite's variable-length integer; also return the offset after it."""
    value = 0
    for n in range(9):
        if offset + n >= len(data):
            raise CouldNotLook("a number is cut off")
        byte = data[offset + n]
        if n == 8:
            return value << 8 | byte, offset + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + n + 1
    raise AssertionError  # the ninth byte always ends it
