"""Read pages of a damaged database, with its log or journal, without trusting its header."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import open_regular
from hermes_doctor.sqlite import rollback_journal as journals
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES, page_size_of
from hermes_doctor.sqlite.pages import LEAF, PARSE_ERRORS, local_size, page_header, varint
from hermes_doctor.sqlite.wal import DamagedLog, read_damaged

SAMPLE = 3000
"""Pages that are sampled, spread over the file."""

BLOCK, LOOKED = 1 << 20, 1 << 25
"""Bytes read at once, and bytes that are searched for a declaration."""


def page_size(fd: int, length: int) -> int:
    """The page size in the header, unless the pages prove another one."""
    start = os.pread(fd, 100, 0)
    claimed = page_size_of(start) if len(start) == 100 else 0
    pages = int.from_bytes(start[28:32], "big") if len(start) == 100 else 0
    if claimed and start[:16] == MAGIC and pages * claimed == length:
        return claimed  # two fields and the file agree
    votes = {size: _fit(fd, length, size) for size in sorted(PAGE_SIZES) if size <= length}
    if not votes:
        return claimed or 4096
    counted = length // pages if pages and length % pages == 0 else 0
    if counted in votes and votes[counted] > votes.get(claimed, (0.0, 0)):
        return counted  # the page count gives their size, and the pages agree
    best = max(votes, key=lambda size: votes[size])
    share, _ = votes.get(claimed, (0.0, 0))
    if claimed in votes and (share >= 0.5 * votes[best][0] or votes[best][1] < 8):
        return claimed
    return best


def is_utf16(fd: int, length: int) -> bool:
    """Whether the text is UTF-16: by the first CREATE TABLE, else by the header."""
    word = "CREATE TABLE"
    forms = [word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be")]
    for start in range(0, min(length, LOOKED), BLOCK):
        block = os.pread(fd, BLOCK + 64, start)
        places = {form: at for form in forms if (at := block.find(form)) >= 0}
        if places:
            return min(places, key=places.__getitem__) != forms[0]
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
        header = page_header(page, 0, size)
        if not header or not header[1]:
            continue
        kind, cells = header
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
        header = page_header(page, 0, size) if len(page) == size else None
        if not header or header[0] != LEAF or not header[1]:
            continue
        at = max(header[1])
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


GAP = 1 << 20
"""The most pages that the size in a log or journal may exceed the file by."""


class DamagedFile:
    """Random access to pages; bytes outside the file read as zeros."""

    def __init__(self, fd: int, wal: int | None, journal: int | None) -> None:
        self.fd = fd
        self.size = os.fstat(fd).st_size
        self.page_size = page_size(fd, self.size)
        self.reserved = reserved_bytes(fd, self.size, self.page_size)
        self.usable = self.page_size - self.reserved
        self.file_pages = -(-self.size // self.page_size)
        self.wal = wal
        self.journal = journal
        self.log = read_damaged(wal, self.page_size) if wal is not None else DamagedLog()
        self.undo = (
            journals.read(journal, self.page_size) if journal is not None else journals.NOTHING
        )
        if self.undo.page_size != self.page_size:
            self.undo = journals.NOTHING  # of another database
        self.count = 0
        self.over: Mapping[int, int] = {}
        self.over_fd = -1
        self.use_log()

    def use_log(self) -> None:
        """Read the file with its write-ahead log applied, as SQLite would."""
        self._overlay(self.log.places, self.wal)
        if not self.log.damaged and self.log.pages:
            self.count = min(self.log.pages, self._reach(len(self.over)))

    def use_journal(self) -> None:
        """Read the file as it was before the transaction that the journal undoes."""
        self._overlay(self.undo.places, self.journal)
        if self.undo.pages:
            self.count = min(self.count, self.undo.pages)

    def use_file(self) -> None:
        """Read the file alone."""
        self._overlay({}, None)

    @property
    def in_wal_mode(self) -> bool:
        """Whether the file was last written in WAL mode, which uses no rollback journal."""
        return os.pread(self.fd, 2, 18) == b"\x02\x02"

    @property
    def claimed(self) -> int:
        """The page count before a possible truncation: other pages may point past the end."""
        first = self.page(1)
        stored = int.from_bytes(first[28:32], "big") if first.startswith(MAGIC) else 0
        return max(self.count, stored)

    @property
    def auto_vacuum(self) -> int:
        """The auto_vacuum mode of the file: 0 none, 1 full, 2 incremental."""
        first = self.page(1)
        if first[:16] != MAGIC or not any(first[52:56]):
            return 0
        return 2 if any(first[64:68]) else 1

    def counter(self) -> int:
        """The change counter of the file."""
        return int.from_bytes(os.pread(self.fd, 4, 24), "big")

    def counter_before_journal(self) -> int | None:
        """The change counter before the transaction that the journal undoes, if it has page 1."""
        at = self.undo.places.get(1)
        if at is None or self.journal is None:
            return None
        return int.from_bytes(os.pread(self.journal, 4, at + 24), "big")

    def _overlay(self, places: Mapping[int, int], fd: int | None) -> None:
        reach = self._reach(len(places))
        self.over = {page: at for page, at in places.items() if page <= reach}
        self.over_fd = -1 if fd is None else fd
        self.count = max(self.file_pages, max(self.over, default=0))

    def _reach(self, places: int) -> int:
        """The highest plausible page number, because a hostile log may name any.

        If the file is missing or truncated, the size in its log or journal counts.
        """
        logged = max(self.log.pages, self.undo.pages)
        return max(self.file_pages + places, min(logged, self.file_pages + GAP))

    def page(self, number: int) -> bytes:
        """One page, counted from 1."""
        at = self.over.get(number)
        if at is not None:
            page = os.pread(self.over_fd, self.page_size, at)
        else:
            page = os.pread(self.fd, self.page_size, (number - 1) * self.page_size)
        missing = self.page_size - len(page)
        return page + bytes(missing) if missing else page

    def pages(self) -> Iterator[tuple[int, bytes]]:
        """All pages in order."""
        size, over = self.page_size, self.over
        each = max(1, BLOCK // size)
        for first in range(0, self.count, each):
            block = os.pread(self.fd, each * size, first * size)
            for number in range(first, min(first + each, self.count)):
                if number + 1 in over:
                    yield number + 1, self.page(number + 1)
                    continue
                page = block[(number - first) * size : (number - first + 1) * size]
                missing = size - len(page)
                yield number + 1, page + bytes(missing) if missing else page


@contextmanager
def open_image(source: Path) -> Iterator[DamagedFile]:
    """Open the database at `source` with its sidecar files."""
    with ExitStack() as stack:

        def descriptor(path: Path) -> int:
            fd = open_regular(path)
            stack.callback(os.close, fd)
            return fd

        try:
            main = descriptor(source)
            if is_utf16(main, os.fstat(main).st_size):
                raise CannotFix(
                    "the text of {source} is UTF-16, which hermes-doctor does not read",
                    source=source.name,
                )
            sidecars: list[int | None] = [None, None]
            for place, suffix in enumerate(("-wal", "-journal")):
                with suppress(FileNotFoundError):
                    sidecars[place] = descriptor(source.with_name(source.name + suffix))
            image = DamagedFile(main, *sidecars)
        except OSError as error:
            raise CouldNotLook(
                "{source}: {reason}",
                source=source.name,
                reason=os.strerror(error.errno or 0).lower(),
            ) from error
        yield image
