"""Read pages and rows of a database as the next reader would see them, with its log."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, open_regular, read_head, size
from hermes_doctor.sqlite import header as headers, rollback_journal as journals, wal
from hermes_doctor.sqlite.cells import (
    INTERIOR,
    LEAF,
    PARSE_ERRORS,
    LostValue,
    Value,
    children_of,
    local_size,
    page_header,
    record,
    varint,
)
from hermes_doctor.sqlite.files import OpenFiles
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.wal import WriteAheadLog

WAL_LIMIT = 64 * MEGABYTE
"""Only the frame headers of a log are read (24 bytes each), so this limits time, not memory."""


MOST_PAGES = 2000
"""The most pages of a table that are read; Hermes' largest schema fills ten."""
ROW_LIMIT = 16 * MEGABYTE


class DatabasePages:
    """Random access to the committed pages of one database."""

    def __init__(
        self,
        db: int,
        wal: int | None,
        page_size: int,
        reserved: int,
        frames: Mapping[int, int],
        count: int = 0,
    ) -> None:
        self.db = db
        self.wal = wal
        self.page_size = page_size
        self.usable = page_size - reserved
        self.frames = frames
        """By page number: the offset of its newest committed version in the log."""
        self.count = count or max(os.fstat(db).st_size // page_size, max(frames, default=0))

    def read(self, number: int) -> bytes:
        """One page; numbers start at 1."""
        if not 1 <= number <= self.count:
            raise CouldNotLook("page {number} is beyond the end of the file", number=number)
        if number in self.frames and self.wal is not None:
            page = os.pread(self.wal, self.page_size, self.frames[number])
        else:
            page = os.pread(self.db, self.page_size, (number - 1) * self.page_size)
        if len(page) < self.page_size:
            raise CouldNotLook("page {number} is cut off", number=number)
        return page

    def read_cells(self, number: int) -> tuple[bytes, int, tuple[int, ...]]:
        """One page of a table or an index, its kind, and the offsets of its cells."""
        page = self.read(number)
        header = page_header(page, first_byte(number), self.usable)
        if header is None:
            raise CouldNotLook("page {number} is not a page of a table or an index", number=number)
        return page, *header

    def overflow(self, number: int, left: int) -> Iterator[tuple[int, bytes]]:
        """Follow overflow pages until `left` bytes are read: each number, and its bytes."""
        while left > 0:
            page = self.read(number)
            yield number, page[4 : min(self.usable, 4 + left)]
            left -= self.usable - 4
            (number,) = struct.unpack_from(">I", page)

    def rows(self, root: int, *, max_pages: int = MOST_PAGES) -> Iterator[list[Value]]:
        """The rows of the table at page `root`; raises if it has more than `max_pages` pages."""
        return (row for _, row in self.rows_with_pages(root, max_pages=max_pages))

    def rows_with_pages(
        self, root: int, *, max_pages: int = MOST_PAGES
    ) -> Iterator[tuple[int, list[Value]]]:
        """The same rows, each with the number of the leaf page that holds it."""
        seen: set[int] = set()
        todo = [root]
        while todo:
            number = todo.pop()
            if number in seen or len(seen) >= max_pages:
                raise CouldNotLook(
                    "the tree at page {root} is too large or refers to itself", root=root
                )
            seen.add(number)
            page, kind, cells = self.read_cells(number)
            if kind not in (INTERIOR, LEAF):
                raise CouldNotLook("page {number} is not a page of a table", number=number)
            try:
                if kind == INTERIOR:
                    todo.extend(reversed(children_of(page, first_byte(number), cells)))
                    continue
                for at in cells:
                    yield number, self._row(page, at)
            except PARSE_ERRORS as error:
                raise CouldNotLook("page {number} is damaged", number=number) from error

    def _row(self, page: bytes, at: int) -> list[Value]:
        """The values of the row in one cell; text that is not valid UTF-8 is replaced."""
        length, at = varint(page, at)
        _, at = varint(page, at)
        if length > ROW_LIMIT:
            raise CouldNotLook("a row claims to be larger than 16 MB")
        here = local_size(length, self.usable, index=False)
        payload = page[at : at + here]
        if here < length:
            (first,) = struct.unpack_from(">I", page, at + here)
            payload += b"".join(part for _, part in self.overflow(first, length - here))
        return [
            str(value) if isinstance(value, str) else value
            for value in record(payload)
            if not isinstance(value, LostValue)
        ]


def first_byte(number: int) -> int:
    """The offset at which the b-tree of a page begins: the first page has the file's header."""
    return 100 if number == 1 else 0


def pages_with_log(files: OpenFiles, log: WriteAheadLog, header: Header) -> DatabasePages:
    """The pages of a database whose write-ahead log has already been read."""
    size = log.page_size if log.pages else header.page_size
    count = log.db_pages or header.snapshot.size // size
    pages = DatabasePages(files.main, files.log, size, 0, log.pages, count)
    pages.usable -= pages.read(1)[20]
    return pages


def pages_of(db: int, log: int | None) -> DatabasePages:
    """The pages of an open database and its log, whose checksums are not verified.

    A wrong page can only make reading fail here, never a write.
    """
    head = headers.Header(os.pread(db, 128, 0), Snapshot.of(os.fstat(db)))
    if not head.magic or not head.page_size:
        raise CouldNotLook("it is not a database")
    if int.from_bytes(head.head[56:60], "big") not in (0, 1):
        raise CouldNotLook("its text is UTF-16, which hermes-doctor does not read")
    frames: Mapping[int, int] = {}
    if log is not None:
        if (length := os.fstat(log).st_size) > WAL_LIMIT:
            raise CouldNotLook(
                "its write-ahead log is too large to read ({size})", size=size(length)
            )
        read = wal.read(log, committed=sys.maxsize, live=True)
        frames = read.pages if read.page_size == head.page_size else {}
    return DatabasePages(db, log, head.page_size, head.head[20], frames)


@contextmanager
def open_pages(path: Path) -> Iterator[DatabasePages]:
    """Open the pages of the database at `path`; nothing is locked, created or changed."""
    descriptors = [open_regular(path)]
    try:
        journal = path.with_name(path.name + "-journal")
        with suppress(FileNotFoundError):
            if read_head(journal, 8)[0] == journals.MAGIC:
                raise CouldNotLook("it has an unfinished transaction")
        with suppress(FileNotFoundError):
            descriptors.append(open_regular(path.with_name(path.name + "-wal")))
        yield pages_of(descriptors[0], descriptors[1] if len(descriptors) > 1 else None)
    except OSError as error:
        raise CouldNotLook(
            "{path}: {reason}", path=path.name, reason=os.strerror(error.errno or 0).lower()
        ) from error
    finally:
        for fd in descriptors:
            os.close(fd)
