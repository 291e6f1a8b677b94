"""Parse a rollback journal: the original versions of pages that a transaction overwrote."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.sqlite.header import PAGE_SIZES

MAGIC = bytes.fromhex("d9d505f920a163d7")
HEAD = 28
_UNCOUNTED = 0xFFFFFFFF
"""A record count that means "as many as fit"; a writer that does not sync the disk writes it."""
_LONGEST_NAME = 4096


class Undo(NamedTuple):
    """The content of a journal: the pages to write back and the size to truncate the file to."""

    pages: int = 0
    """The size of the database in pages when the transaction started."""
    page_size: int = 0
    places: Mapping[int, int] = {}
    """By page number: the offset of its original version in the journal."""
    whole: bool = True
    """All records that the journal announces exist and have the right checksum."""
    shared: bool = False
    """It names a super-journal: the transaction was over several databases."""

    def page(self, fd: int, number: int) -> bytes | None:
        """The original version of a page, if the journal has it."""
        at = self.places.get(number)
        return None if at is None else os.pread(fd, self.page_size, at)


NOTHING = Undo()


def read(fd: int, page_size: int) -> Undo:
    """Read a journal as SQLite does: up to the first invalid record.

    `page_size` is that of the database, for journals that do not contain it.
    """
    length = os.fstat(fd).st_size
    undo = NOTHING
    places: dict[int, int] = {}
    whole, at = True, 0
    while head := _head(fd, at, page_size):
        count, nonce, pages, sector, size = head
        if not at:
            undo = Undo(pages, size, shared=_shared(fd, length))
        elif size != undo.page_size:
            break
        room = max(0, (length - at - sector) // (size + 8))
        wanted = room if count == _UNCOUNTED else count
        at += sector
        done = _records(fd, at, min(wanted, room), size, nonce, undo.pages, places)
        if done < wanted:
            whole = False
            break
        at = -(-(at + wanted * (size + 8)) // sector) * sector
    return undo._replace(places=places, whole=whole)


def is_hot(fd: int) -> bool:
    """Whether SQLite would play a journal back: it has a valid header."""
    return _head(fd, 0, min(PAGE_SIZES)) is not None


def _head(fd: int, at: int, page_size: int) -> tuple[int, int, int, int, int] | None:
    """Parse a header: record count, nonce, database pages, sector size and page size."""
    head = os.pread(fd, HEAD, at)
    if len(head) < HEAD or head[:8] != MAGIC:
        return None
    count, nonce, pages, sector, size = struct.unpack_from(">5I", head, 8)
    size = size or page_size
    if size not in PAGE_SIZES or not 32 <= sector <= 65536 or sector & (sector - 1):
        return None
    return count, nonce, pages, sector, size


def _records(
    fd: int, at: int, most: int, size: int, nonce: int, pages: int, places: dict[int, int]
) -> int:
    """Count consecutive valid records; the offsets of their pages are added to `places`."""
    for done in range(most):
        record = os.pread(fd, size + 8, at)
        if len(record) < size + 8:
            return done
        (number,) = struct.unpack_from(">I", record)
        (stored,) = struct.unpack_from(">I", record, size + 4)
        page = record[4:-4]
        checksum = nonce + sum(
            page[place] for place in range(size - 200, 0, -200)
        )  # every 200th byte
        if not number or checksum & 0xFFFFFFFF != stored:
            return done
        if number <= pages:  # later pages are truncated anyway
            places.setdefault(number, at + 4)
        at += size + 8
    return most


def _shared(fd: int, length: int) -> bool:
    """Whether it ends with the name of a super-journal."""
    if length < HEAD + 16:
        return False
    tail = os.pread(fd, 16, length - 16)
    name = struct.unpack_from(">I", tail)[0] if len(tail) == 16 else 0
    return tail[8:] == MAGIC and 0 < name < min(length, _LONGEST_NAME)


def rolled_back(fd: int, undo: Undo, data: bytes) -> bytes:
    """The whole database in memory, after playing the journal back."""
    size = undo.page_size
    out = bytearray(data[: undo.pages * size])
    out.extend(bytes(undo.pages * size - len(out)))
    for number in undo.places:
        out[(number - 1) * size : number * size] = undo.page(fd, number) or bytes(size)
    return bytes(out)
