"""Diagnose damage to the first page of a database and whether rewriting the header repairs it."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import listed, text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.sqlite.header import PAGE_SIZES, UNKNOWN, Header
from hermes_doctor.sqlite.pages import PARSE_ERRORS, varint

USUAL = 4096
"""The page size of all databases that Hermes creates."""
_MOST_PAGES = 65536
"""How many pages are searched for rows: 256 MB, which takes about 0.1 s."""
_KINDS = (0x02, 0x05, 0x0A, 0x0D)
_FIELDS = {
    "page_size": "page size",
    "format": "file format version",
    "fractions": "payload limit",
    "reserved": "reserved space",
    "schema_format": "schema format",
    "encoding": "text encoding",
}
"""The names of header fields for people."""


class FirstPageFault(NamedTuple):
    """Why SQLite cannot open a file, or reads it wrongly."""

    kind: str
    """magic (only the magic bytes are wrong), fields (header fields are wrong, the b-tree after
    them is sound), lost (the first page is lost, and later pages may have rows), or other (no page
    of the file belongs to a database)."""
    what: str
    fields: Mapping[str, int] = {}
    """The correct values of the header fields that are wrong."""


def not_a_database(fd: int, header: Header, page_size: int) -> FirstPageFault | None:
    """The fault if the whole file is of another kind, whatever the log beside it contains.

    A damaged database is not: its later pages can still be read with the log.
    """
    size = header.snapshot.size
    if header.magic or header.rest_is_sound or header.looks_like in UNKNOWN:
        return None
    if _good_pages(fd, size, page_size)[0]:
        return None
    fault = judge(fd, header)
    return fault if fault is not None and fault.kind == "other" else None


def judge(fd: int, header: Header) -> FirstPageFault | None:
    """Find the fault of the first page in the file; SQLite reads it unless the log has a newer."""
    head, size = os.pread(fd, 65536, 0), header.snapshot.size
    if header.magic and _sound(head, header.page_size):
        fields = _wrong_fields(header, head)
        if not fields:
            return None
        names = listed([_FIELDS[field] for field in fields])
        what = text("its header has a wrong {fields}", fields=names)
        return FirstPageFault("fields", what, fields)
    if header.rest_is_sound and not header.magic:
        return FirstPageFault(
            "magic", "its first 16 bytes are damaged; the rest of its header is intact"
        )
    for page_size in (USUAL, *sorted(PAGE_SIZES - {USUAL}, reverse=True)):
        if _sound(head, page_size) and _plausible(fd, size, page_size):
            return FirstPageFault("fields", _seen(header), {"page_size": page_size, "all": 1})
    if header.magic and header.page_size and len(head) < 512:
        return FirstPageFault("other", text("it ends after {bytes} bytes", bytes=len(head)))
    page_size = header.page_size if header.magic and header.page_size else USUAL
    rows = _plausible(fd, size, page_size) or _has_a_page(fd, size, page_size)
    rows = rows and size >= 2 * page_size  # the first page has no rows
    return FirstPageFault("lost" if rows else "other", _seen(header))


def _seen(header: Header) -> str:
    if header.magic and not header.page_size:
        return "its first 16 bytes are right, but the page size after them is impossible"
    if header.magic:
        return "its header is right, but the first page after it is not a database page"
    return text("it begins with {content}", content=header.looks_like)


def _sound(head: bytes, page_size: int) -> bool:
    """Whether the first page is a valid b-tree page: its type, and every cell inside the page."""
    if page_size < 512 or len(head) < page_size or head[100] not in (0x05, 0x0D):
        return False
    cells: int = struct.unpack_from(">H", head, 103)[0]
    start = 112 if head[100] == 0x05 else 108
    if start + 2 * cells > page_size:
        return False
    offsets: tuple[int, ...] = struct.unpack_from(f">{cells}H", head, start)
    if cells == 0:
        return head[100] == 0x0D
    content: int = struct.unpack_from(">H", head, 105)[0] or 65536
    return (
        content <= min(offsets)
        and start + 2 * cells <= min(offsets)
        and max(offsets) < page_size
        and len(set(offsets)) == cells
    )


def _wrong_fields(header: Header, head: bytes) -> dict[str, int]:
    """Header fields that contradict the file; a field that cannot be checked counts as correct."""
    size, claimed, page_size = header.snapshot.size, header.page_count, header.page_size
    wrong: dict[str, int] = {}
    real = size // claimed if claimed and size % claimed == 0 else 0
    if real in PAGE_SIZES - {page_size} and _sound(head, real):
        wrong["page_size"] = page_size = real
    if head[18] not in (1, 2) or head[19] not in (1, 2):
        wrong["format"] = 2
    if head[21:24] != b"\x40\x20\x20":
        wrong["fractions"] = 1
    if head[20] and _farthest(head, page_size) > page_size - head[20]:
        wrong["reserved"] = 0
    if not 0 <= int.from_bytes(head[44:48], "big") <= 4:
        wrong["schema_format"] = 4
    if int.from_bytes(head[56:60], "big") not in (0, 1, 2, 3):
        wrong["encoding"] = 1
    return wrong


def _farthest(head: bytes, page_size: int) -> int:
    """Where the last cell of the first page ends."""
    (cells,) = struct.unpack_from(">H", head, 103)
    interior = head[100] == 0x05
    ends = []
    try:
        for offset in struct.unpack_from(f">{cells}H", head, 112 if interior else 108):
            if interior:
                ends.append(varint(head, offset + 4)[1])
                continue
            length, at = varint(head, offset)
            _, at = varint(head, at)
            ends.append(at + length if length <= page_size - 35 else at)
    except PARSE_ERRORS:
        return 0
    return max(ends, default=0)


def _plausible(fd: int, size: int, page_size: int) -> bool:
    """Whether a sample of later pages looks like b-tree pages of this size."""
    if size // page_size < 2:
        return size == page_size
    good, sample = _good_pages(fd, size, page_size)
    return good * 4 >= sample


def has_rows(path: Path, *, whole: bool = False) -> bool:
    """Whether any page of a file looks like one with rows of a database; it may be damaged.

    Of a large file the first pages are read, with `whole` all of them.
    """
    try:
        fd = open_regular(path, follow=False)
    except (OSError, CouldNotLook):
        return False
    try:
        size = os.fstat(fd).st_size
        return _has_a_page(fd, size, USUAL, size // USUAL if whole else _MOST_PAGES)
    finally:
        os.close(fd)


def _has_a_page(fd: int, size: int, page_size: int, most: int = _MOST_PAGES) -> bool:
    """Whether any later page looks like one with rows; of a large file, `most` pages are read."""
    last = min(size // page_size, most)
    heads = (os.pread(fd, 12, number * page_size) for number in range(1, last))
    return any(_looks_like_page(head, page_size) and head[3:5] != b"\0\0" for head in heads)


def _good_pages(fd: int, size: int, page_size: int) -> tuple[int, int]:
    """How many of some later pages look like b-tree pages, and how many were read."""
    count = size // page_size
    sample = {2 + n * (count - 2) // 31 for n in range(32)} if count > 1 else set()
    good = sum(_looks_like_page(os.pread(fd, 12, (n - 1) * page_size), page_size) for n in sample)
    return good, len(sample)


def _looks_like_page(head: bytes, page_size: int) -> bool:
    if len(head) < 8 or head[0] not in _KINDS:
        return False
    _, freeblock, cells, content, fragments = struct.unpack_from(">BHHHB", head)
    return (
        freeblock < page_size
        and 12 + 2 * cells <= page_size
        and (content or 65536) <= page_size
        and fragments <= 60
    )
