"""Parse pages that may be damaged, and read those of a database with its log."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import (
    MEGABYTE,
    Snapshot,
    open_regular,
    read_head,
    reason,
    size,
)
from hermes_doctor.sqlite import header as headers, wal
from hermes_doctor.sqlite.files import OpenFiles
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.wal import WriteAheadLog

Value = None | int | float | str | bytes
LEAF, INTERIOR, INDEX_LEAF, INDEX_INTERIOR = 13, 5, 10, 2
PARSE_ERRORS = (IndexError, ValueError, struct.error)
"""The exceptions that parsing a damaged page raises; callers catch them for each cell."""
ROW_LIMIT = 256 * 1024 * 1024
SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)


class LostValue:
    """The type of `LOST`: a value whose page is missing; only its serial type is known."""

    def __repr__(self) -> str:
        return "LOST"


LOST = LostValue()


class Cell(NamedTuple):
    """One cell of a table leaf: the rowid and the payload of a row."""

    rowid: int
    payload: bytes
    """The bytes that were found."""
    length: int
    """The length that the cell declares."""
    bad_overflow: bool = False


class Row(NamedTuple):
    """One decoded row; values that could not be read are `LOST`."""

    rowid: int
    kinds: list[int]
    """The serial type of each column, which gives the length even of a lost value."""
    values: list[Value | LostValue]
    whole: bool = True
    rest: bytes = b""
    """The remaining first bytes of the first value that is LOST."""

    bad_overflow: bool = False
    """Its last overflow page has a next page, which is invalid: it may belong to another row."""

    def length(self, column: int) -> int:
        """The length in bytes of a text or blob, also of a LOST one."""
        kind = self.kinds[column] if column < len(self.kinds) else 0
        return (kind - 12) >> 1 if kind >= 12 else 0


def page_header(page: bytes, offset: int, usable: int) -> tuple[int, tuple[int, ...]] | None:
    """The type of a b-tree page and its cell offsets; None if it is not a b-tree page."""
    kind = page[offset]
    if kind not in (13, 10, 5, 2):
        return None
    free, cells, content, fragments = struct.unpack_from(">HHHB", page, offset + 1)
    start = offset + (8 if kind > 5 else 12)
    content = content or 65536
    if (
        fragments > 60
        or start + 2 * cells > usable
        or content > usable
        or content < start + 2 * cells
        or free >= usable
        or (cells == 0 and kind <= 5 and not offset)  # the first page may have no room for one
    ):
        return None
    return kind, struct.unpack_from(f">{cells}H", page, start)


def children_of(page: bytes, offset: int, cells: tuple[int, ...]) -> list[int]:
    """The children of an interior page, whose header is at `offset`."""
    return [struct.unpack_from(">I", page, at)[0] for at in (*cells, offset + 8)]


def varint(data: bytes, offset: int) -> tuple[int, int]:
    """Decode SQLite's variable-length integer; also return the offset after it."""
    byte = data[offset]
    if byte < 0x80:
        return byte, offset + 1
    value = byte & 0x7F
    for n in range(offset + 1, offset + 8):
        byte = data[n]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, n + 1
    return value << 8 | data[offset + 8], offset + 9


def to_signed(value: int) -> int:
    """Convert an unsigned 64-bit varint to the signed rowid that it encodes."""
    return value - (1 << 64) if value >= 1 << 63 else value


def local_size(length: int, usable: int, *, index: bool) -> int:
    """How many bytes of a payload are stored on the page itself, not on overflow pages."""
    most = (usable - 12) * 64 // 255 - 23 if index else usable - 35
    if length <= most:
        return length
    least = (usable - 12) * 32 // 255 - 23
    here = least + (length - least) % (usable - 4)
    return here if here <= most else least


def kinds_of(payload: bytes) -> tuple[list[int], int]:
    """The serial types of a record, and the offset at which its values start."""
    length, at = varint(payload, 0)
    if not at <= length <= len(payload):
        raise ValueError("the header of the record is longer than the record")
    raw = payload[at:length]
    if raw.isascii():
        kinds = list(raw)
    else:
        kinds, value = [], 0
        for byte in raw:
            if byte < 0x80:
                kinds.append(value << 7 | byte)
                value = 0
            else:
                value = value << 7 | byte & 0x7F
        if value or max(kinds, default=0) > 2 * ROW_LIMIT + 13:
            raise ValueError("the header of the record does not end where it says")
    if 10 in kinds or 11 in kinds:
        raise ValueError("a serial type that is never written")
    return kinds, length


def values_of(
    payload: bytes, kinds: list[int], offset: int, *, whole: bool
) -> list[Value | LostValue]:
    """The values of a record; values past the end of a truncated payload are LOST."""
    values: list[Value | LostValue] = []
    end = len(payload)
    for kind in kinds:
        if kind >= 12:
            stop = offset + ((kind - 12) >> 1)
            if stop > end:
                values.append(LOST)
            elif kind & 1:
                values.append(text(payload[offset:stop]))
            else:
                values.append(payload[offset:stop])
            offset = stop
        elif kind == 0:
            values.append(None)
        elif kind >= 8:
            values.append(kind - 8)
        else:
            stop = offset + SIZES[kind]
            if stop > end:
                values.append(LOST)
            elif kind == 7:
                values.append(float(struct.unpack_from(">d", payload, offset)[0]))
            else:
                values.append(int.from_bytes(payload[offset:stop], "big", signed=True))
            offset = stop
    if whole and offset != end:
        raise ValueError("the record is not as long as its header says")
    return values


def record(payload: bytes) -> list[Value | LostValue]:
    """The values of a complete record."""
    kinds, offset = kinds_of(payload)
    return values_of(payload, kinds, offset, whole=True)


def truncated_value(payload: bytes, kinds: list[int], offset: int) -> bytes:
    """The available bytes of the value in which a truncated payload ends."""
    for kind in kinds:
        size = (kind - 12) >> 1 if kind >= 12 else SIZES[kind]
        if offset + size > len(payload):
            return payload[offset:]
        offset += size
    return b""


class ReplacedText(str):
    """Text with invalid UTF-8 bytes replaced, because Hermes cannot read it otherwise."""

    raw: bytes
    """The bytes as stored."""


class RawText(bytes):
    """Text with invalid UTF-8 that is written back byte for byte."""

    __slots__ = ()


def text(raw: bytes) -> str:
    """Decode stored text; return a `ReplacedText` if it is not valid UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        mangled = ReplacedText(raw.decode("utf-8", "replace"))
        mangled.raw = raw
        return mangled


WAL_LIMIT = 64 * MEGABYTE
"""Only the frame headers of a log are read (24 bytes each), so this limits time, not memory."""


MOST_PAGES = 2000
"""The most pages of a table that are read; Hermes' largest schema fills ten."""
LARGEST_ROW = 16 * MEGABYTE


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
                what = "the tree at page {root} is too large or refers to itself"
                raise CouldNotLook(what, root=root)
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
        if length > LARGEST_ROW:
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
            what = "its write-ahead log is too large to read ({size})"
            raise CouldNotLook(what, size=size(length))
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
            if read_head(journal, 8)[0] == wal.JOURNAL_MAGIC:
                raise CouldNotLook("it has an unfinished transaction")
        with suppress(FileNotFoundError):
            descriptors.append(open_regular(path.with_name(path.name + "-wal")))
        yield pages_of(descriptors[0], descriptors[1] if len(descriptors) > 1 else None)
    except OSError as error:
        raise CouldNotLook(reason(error, path)) from error
    finally:
        for fd in descriptors:
            os.close(fd)
