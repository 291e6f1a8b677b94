"""Check the freelist of a database: the chain of its unused pages."""

from __future__ import annotations

import struct

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.pages import DatabasePages

MOST_TRUNKS = 64


class Freelist(NamedTuple):
    """The result of checking the start of the freelist."""

    pages: int
    """The number of free pages in the header of the database."""
    fault: str | None = None


def read(pages: DatabasePages) -> Freelist:
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
