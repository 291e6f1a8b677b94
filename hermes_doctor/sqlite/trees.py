"""Find out which table or index each page belongs to, and which pages are damaged."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.pages import DatabasePages
from hermes_doctor.sqlite.table_rows import varint
from hermes_doctor.system import time_limits

TABLE = {0x05: "interior", 0x0D: "leaf"}
INDEX = {0x02: "interior", 0x0A: "leaf"}
SCHEMA = "sqlite_master"


@dataclass
class PageOwners:
    """The table or index of each page; `finished` is False if the time ran out."""

    pages: dict[int, str] = field(default_factory=dict)
    bad: dict[int, str] = field(default_factory=dict)
    """Pages that are not what their parent page says, and the damaged table or index."""
    finished: bool = True


def find_owners(
    pages: DatabasePages,
    roots: Iterable[tuple[str, int, bool]],
    *,
    seconds: float,
    overflow: bool,
) -> PageOwners:
    """Walk each b-tree (name, root page, whether it is a table) until the time is over.

    Without `overflow` only interior pages are read, which is enough to find the leaves.
    """
    found = PageOwners()
    end = time.monotonic() + time_limits.stretch(seconds)
    for name, root, table in [(SCHEMA, 1, True), *roots]:
        kinds = TABLE if table else INDEX
        todo = [(root, False)]
        while todo:
            if time.monotonic() > end:
                found.finished = False
                return found
            number, known_leaf = todo.pop()
            if number in found.pages:
                found.bad[number] = name
                continue
            found.pages[number] = name
            if known_leaf and not overflow:
                continue
            try:
                todo += _children(pages, number, kinds, found, name, overflow)
            except (CouldNotLook, struct.error, IndexError):
                found.bad[number] = name
    return found


def _children(
    pages: DatabasePages,
    number: int,
    kinds: dict[int, str],
    found: PageOwners,
    name: str,
    overflow: bool,
) -> list[tuple[int, bool]]:
    page = pages.read(number)
    start = 100 if number == 1 else 0
    kind = kinds.get(page[start])
    if kind is None:
        raise CouldNotLook("it is a page of another kind")
    (cells,) = struct.unpack_from(">H", page, start + 3)
    head = start + (12 if kind == "interior" else 8)
    offsets = struct.unpack_from(f">{cells}H", page, head)
    if any(offset < head + 2 * cells or offset >= pages.usable for offset in offsets):
        raise CouldNotLook("a cell is outside its page")
    if kind == "leaf":
        if overflow:
            for offset in offsets:
                _overflow(pages, page, offset, found, name, table=kinds is TABLE)
        return []
    (right,) = struct.unpack_from(">I", page, start + 8)
    children = [struct.unpack_from(">I", page, offset)[0] for offset in offsets]
    if overflow and kinds is INDEX:
        for offset in offsets:
            _overflow(pages, page, offset + 4, found, name, table=False)
    deep = _is_interior(pages, right, kinds)
    return [(child, not deep) for child in [*children, right]]


def _is_interior(pages: DatabasePages, number: int, kinds: dict[int, str]) -> bool:
    """Whether a child is an interior page, like its siblings; a damaged one counts as one."""
    try:
        return kinds.get(pages.read(number)[0]) != "leaf"
    except CouldNotLook:
        return True


def _overflow(
    pages: DatabasePages, page: bytes, at: int, found: PageOwners, name: str, *, table: bool
) -> None:
    """Follow the overflow pages of a long row."""
    length, at = varint(page, at)
    if table:
        _, at = varint(page, at)
    usable = pages.usable
    most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
    if length <= most:
        return
    least = (usable - 12) * 32 // 255 - 23
    local = least + (length - least) % (usable - 4)
    local = local if local <= most else least
    left = length - local
    (number,) = struct.unpack_from(">I", page, at + local)
    while left > 0:
        if number in found.pages:
            found.bad[number] = name
            return
        found.pages[number] = name
        try:
            (following,) = struct.unpack_from(">I", pages.read(number))
        except CouldNotLook:
            found.bad[number] = name
            return
        left -= usable - 4
        number = following
