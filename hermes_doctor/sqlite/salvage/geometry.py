"""Determine page size, reserved bytes and encoding of a database without trusting its header."""

from __future__ import annotations

import os
from collections import Counter

from hermes_doctor.sqlite.cells import LEAF, PARSE_ERRORS, local_size, page_header, varint
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES

SAMPLE = 3000
"""Pages that are sampled, spread over the file."""

BLOCK, LOOKED = 1 << 20, 1 << 25
"""Bytes read at once, and bytes that are searched for a declaration."""


def page_size(fd: int, length: int) -> int:
    """The page size in the header, unless the pages prove another one."""
    start = os.pread(fd, 100, 0)
    claimed = int.from_bytes(start[16:18], "big") if len(start) == 100 else 0
    claimed = 65536 if claimed == 1 else claimed
    pages = int.from_bytes(start[28:32], "big") if len(start) == 100 else 0
    if claimed in PAGE_SIZES and start[:16] == MAGIC and pages * claimed == length:
        return claimed  # two fields and the file agree
    votes = {size: _fit(fd, length, size) for size in sorted(PAGE_SIZES) if size <= length}
    if not votes:
        return claimed if claimed in PAGE_SIZES else 4096
    counted = length // pages if pages and length % pages == 0 else 0
    if counted in votes and votes[counted] > votes.get(claimed, (0.0, 0)):
        return counted  # the page count gives their size, and the pages agree
    best = max(votes, key=lambda size: votes[size])
    share, _ = votes.get(claimed, (0.0, 0))
    if claimed in votes and (share >= 0.5 * votes[best][0] or votes[best][1] < 8):
        return claimed
    return best


def is_utf16(fd: int, length: int) -> bool:
    """Whether the text is UTF-16, according to the encoding of the first CREATE TABLE.

    The header is used only if none is found, because it is the most likely part to be damaged.
    """
    word = "CREATE TABLE"
    forms = [word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be")]
    for start in range(0, min(length, LOOKED), BLOCK):
        block = os.pread(fd, BLOCK + 64, start)
        found = {form: at for form in forms if (at := block.find(form)) >= 0}
        if found:
            return min(found, key=found.__getitem__) != forms[0]
    head = os.pread(fd, 60, 0)
    return head[:16] == MAGIC and head[56:60] in (b"\0\0\0\2", b"\0\0\0\3")


def _fit(fd: int, length: int, size: int) -> tuple[float, int]:
    """The share and the number of sampled pages that are b-tree pages of this size."""
    count = length // size
    step = max(1, count // SAMPLE)
    good = looked = 0
    for number in range(1, count, step):
        page = os.pread(fd, size, number * size)
        if len(page) < size:
            break
        looked += 1
        found = page_header(page, 0, size)
        if not found or not found[1]:
            continue
        kind, cells = found
        last = max(cells)
        # A page header at a multiple of the true size also fits a size that is too large, but then
        # all cells are in the first half. So a cell must end where the page ends.
        if last < size and min(cells) >= 8 and len(set(cells)) == len(cells):
            good += last >= size // 2 or (kind == LEAF and _end(page, last, size) > size - 256)
    return (good / looked if looked else 0.0), good


def _end(page: bytes, at: int, usable: int) -> int:
    """The offset at which a cell of a table leaf ends; 0 if that is past the page."""
    try:
        length, body = varint(page, at)
        _, body = varint(page, body)
    except PARSE_ERRORS:
        return 0
    here = local_size(length, usable, index=False)
    end = body + here + (4 if here < length else 0)
    return end if end <= len(page) else 0


def reserved_bytes(fd: int, length: int, size: int) -> int:
    """The number of reserved bytes at the end of each page, derived from where cells end."""
    start = os.pread(fd, 100, 0)
    claimed = start[20] if len(start) == 100 and start[:16] == MAGIC else 0
    ends: Counter[int] = Counter()
    count = length // size
    for number in range(1, count, max(1, count // SAMPLE)):
        page = os.pread(fd, size, number * size)
        found = page_header(page, 0, size) if len(page) == size else None
        if not found or found[0] != LEAF or not found[1]:
            continue
        at = max(found[1])
        try:
            whole, _ = varint(page, at)
        except PARSE_ERRORS:
            continue
        end = _end(page, at, size) if whole <= size - 35 else 0
        if end:
            ends[size - end] += 1
    if ends:
        ((spare, votes),) = ends.most_common(1)
        if spare != claimed and spare < 256 and votes > 0.3 * ends.total():
            return spare
    return claimed if size - claimed >= 480 else 0
