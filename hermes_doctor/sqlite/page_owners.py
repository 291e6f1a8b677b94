"""Find the table or index that each page belongs to, and check the list of unused pages."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import time_limits
from hermes_doctor.sqlite.pages import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    DatabasePages,
    children_of,
    first_byte,
    local_size,
    varint,
)

MOST_TRUNKS = 64


class Freelist(NamedTuple):
    """The result of checking the start of the freelist."""

    pages: int
    """The number of free pages in the header of the database."""
    fault: str | None = None


def read_freelist(pages: DatabasePages) -> Freelist:
    """Follow at most MOST_TRUNKS pages of the list; a longer list is judged by its start."""
    head = pages.read(1)
    trunk, count = struct.unpack_from(">II", head, 32)
    if bool(trunk) != bool(count):
        return Freelist(count, "its header and its length do not agree")
    if count >= pages.count:
        return Freelist(count, f"it claims {count} free pages of {pages.count}")
    seen: set[int] = set()
    counted = 0
    while trunk and len(seen) < MOST_TRUNKS:
        if trunk in seen or not 2 <= trunk <= pages.count:
            return Freelist(count, f"it leads to page {trunk} of {pages.count}")
        seen.add(trunk)
        try:
            page = pages.read(trunk)
        except CouldNotLook:
            return Freelist(count, f"it leads to page {trunk}, which cannot be read")
        following, leaves = struct.unpack_from(">II", page)
        if leaves > pages.usable // 4 - 2:
            return Freelist(count, f"page {trunk} cannot be a part of it")
        numbers = struct.unpack_from(f">{leaves}I", page, 8)
        if any(not 2 <= number <= pages.count for number in numbers):
            return Freelist(count, f"page {trunk} names pages that do not exist")
        counted += 1 + leaves
        trunk = following
    if counted > count or (not trunk and counted != count):
        return Freelist(count, f"it contains {counted} pages but claims {count}")
    return Freelist(count)


TABLE, INDEX = (INTERIOR, LEAF), (INDEX_INTERIOR, INDEX_LEAF)
SCHEMA = "sqlite_master"


class PageOwners:
    """The table or index of each page; `finished` is False if the time ran out."""

    def __init__(self, *, finished: bool = True) -> None:
        self.pages: dict[int, str] = {}
        self.bad: dict[int, str] = {}
        """Pages that are not what their parent page says, and the damaged table or index."""
        self.finished = finished


def find_owners(
    pages: DatabasePages, trees: Iterable[tuple[str, int, bool]], *, seconds: float
) -> PageOwners:
    """Walk each b-tree (name, root page, whether it is a table) until the time is over."""
    owners = PageOwners()
    end = time.monotonic() + limits.stretch(seconds)
    for name, root, table in [(SCHEMA, 1, True), *trees]:
        todo = [root]
        while todo:
            if time.monotonic() > end:
                owners.finished = False
                return owners
            number = todo.pop()
            if number in owners.pages:
                owners.bad[number] = name
                continue
            owners.pages[number] = name
            try:
                todo += _children(pages, number, TABLE if table else INDEX, owners)
            except (CouldNotLook, *PARSE_ERRORS):
                owners.bad[number] = name
    return owners


def _children(
    pages: DatabasePages, number: int, kinds: tuple[int, int], owners: PageOwners
) -> list[int]:
    """The children of a page, whose overflow pages get the same owner."""
    page, kind, cells = pages.read_cells(number)
    start = first_byte(number)
    end = start + (12 if kind == kinds[0] else 8) + 2 * len(cells)
    if kind not in kinds:
        raise CouldNotLook("it is a page of another kind")
    if any(at < end or at >= pages.usable for at in cells):
        raise CouldNotLook("a cell is outside its page")
    if kind != INTERIOR:
        for at in cells:
            payload = at + 4 if kind == INDEX_INTERIOR else at
            _overflow(pages, page, payload, owners, owners.pages[number], table=kind == LEAF)
    return children_of(page, start, cells) if kind == kinds[0] else []


def _overflow(
    pages: DatabasePages, page: bytes, at: int, owners: PageOwners, name: str, *, table: bool
) -> None:
    """Follow the overflow pages of a long row."""
    length, at = varint(page, at)
    if table:
        _, at = varint(page, at)
    here = local_size(length, pages.usable, index=not table)
    if here == length:
        return
    (number,) = struct.unpack_from(">I", page, at + here)
    left = length - here
    while left > 0:
        if number in owners.pages:
            owners.bad[number] = name
            return
        owners.pages[number] = name
        try:
            (following,) = struct.unpack_from(">I", pages.read(number))
        except CouldNotLook:
            owners.bad[number] = name
            return
        left -= pages.usable - 4
        number = following
