"""Repair the 100-byte header of a database."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES
from hermes_doctor.sqlite.integrity import integrity_errors
from hermes_doctor.sqlite.repairs.work import open_copy

_KINDS = (b"\x05", b"\x0d")
"""Valid types of the first page: interior or leaf page of a table."""


def write_magic(copy: Path) -> list[str]:
    """Write the 16 magic bytes at the start, and nothing else."""
    with copy.open("r+b") as file:
        file.write(MAGIC)
    return ["Its first 16 bytes were restored; every row is kept."]


def rewrite(copy: Path) -> list[str]:
    """Write a new header: correct the fixed fields, count the pages, and find the page size.

    The page size is the first that SQLite accepts. The freelist is dropped, because only the
    header pointed to it; VACUUM then frees these pages.
    """
    size = copy.stat().st_size
    with copy.open("rb") as file:
        head = file.read(108)
    if len(head) < 108 or head[100:101] not in _KINDS:
        raise CannotFix("its first page is lost, not only the header")
    said = int.from_bytes(head[16:18], "big")
    likely = 65536 if said == 1 else said
    for page_size in sorted(PAGE_SIZES, key=lambda one: (one != likely, one != 4096, one)):
        if size % page_size or not 0 < size // page_size < 2**32:
            continue
        for reserved in sorted({head[20], 0}, key=lambda one: one != head[20]):
            with copy.open("r+b") as file:
                file.write(_header(head, page_size, size // page_size, reserved))
            try:
                return _agreed(copy)
            except CannotFix:
                continue
    raise CannotFix("SQLite cannot open it with any header")


def _header(head: bytes, page_size: int, pages: int, reserved: int) -> bytes:
    """A header for these pages that keeps the plausible counters of the old one."""
    new = bytearray(head[:100])
    new[:16] = MAGIC
    new[16:18] = (1 if page_size == 65536 else page_size).to_bytes(2, "big")
    new[18:20] = head[18:20] if set(head[18:20]) <= {1, 2} else b"\x02\x02"
    new[20] = reserved
    new[21:24] = bytes([64, 32, 32])
    new[28:32] = pages.to_bytes(4, "big")
    new[32:40] = bytes(8)
    if int.from_bytes(head[44:48], "big") not in (1, 2, 3, 4):
        new[44:48] = (4).to_bytes(4, "big")
    new[48:56] = bytes(8)
    new[56:60] = (1).to_bytes(4, "big")
    new[64:68] = bytes(4)
    new[72:92] = bytes(20)
    new[92:96] = new[24:28]  # SQLite uses the page count only if these two are equal
    return bytes(new)


def _agreed(copy: Path) -> list[str]:
    with open_copy(copy) as connection:
        left = integrity_errors(connection)
        if left and all("never used" in one for line in left for one in line.splitlines()[1:]):
            connection.execute("VACUUM")
            left = integrity_errors(connection)
        if left:
            raise CannotFix("more than its header is damaged")
    return ["The header was written again."]
