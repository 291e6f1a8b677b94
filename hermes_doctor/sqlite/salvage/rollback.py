"""The page images in a rollback journal: what a transaction that never ended had overwritten."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass, field

from hermes_doctor.sqlite.pages import JOURNAL


@dataclass
class Rollback:
    """Where the older version of each page lies in the journal."""

    places: dict[int, int] = field(default_factory=dict)
    pages: int = 0
    """The size of the database when the transaction began, in pages."""


def read(fd: int, page_size: int) -> Rollback:
    """The pages whose checksum in the journal holds; none when it is not a hot journal."""
    undo = Rollback()
    length = os.fstat(fd).st_size
    at = 0
    while at + 28 <= length:
        head = os.pread(fd, 28, at)
        if head[:8] != JOURNAL:
            break
        count, nonce, pages, sector, size = struct.unpack_from(">5I", head, 8)
        if not at:
            undo.pages = pages
        if size not in (0, page_size) or not 32 <= sector <= 65536:
            break
        room = (length - at - sector) // (page_size + 8)
        at += sector
        for _ in range(min(count, room) if count != 0xFFFFFFFF else room):
            record = os.pread(fd, page_size + 8, at)
            if len(record) < page_size + 8:
                return undo
            (number,) = struct.unpack_from(">I", record)
            (stored,) = struct.unpack_from(">I", record, page_size + 4)
            if not number or _sum(record[4:-4], nonce, page_size) != stored:
                return undo
            undo.places.setdefault(number, at + 4)
            at += page_size + 8
        at = -(-at // sector) * sector
    return undo


def _sum(page: bytes, nonce: int, page_size: int) -> int:
    """SQLite's checksum of a journalled page: every 200th byte."""
    return (nonce + sum(page[n] for n in range(page_size - 200, 0, -200))) & 0xFFFFFFFF
