"""Read pages of a damaged database, with its log or journal, without trusting its header."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import open_regular, reason
from hermes_doctor.sqlite.header import MAGIC, PAGE_SIZES, page_size_of
from hermes_doctor.sqlite.pages import LEAF, PARSE_ERRORS, local_size, page_header, varint
from hermes_doctor.sqlite.wal import (
    BIG,
    FRAME,
    LITTLE,
    LOG_HEAD,
    NO_JOURNAL,
    LogWalk,
    checksum,
    read_journal,
)

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


class DamagedLog:
    """The newest version of each page in a write-ahead log, and how damaged the log is."""

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        """By page number: the offset of its content in the log."""
        self.frames = 0
        self.dropped = 0
        """Damaged frames of this log."""
        self.frames_after_damage = 0
        """Valid frames after a damaged one, which SQLite would not read."""
        self.pages = 0
        """The size of the database after the last commit, in pages."""

    @property
    def damaged(self) -> bool:
        """Whether SQLite reads less from this log than was committed."""
        return bool(self.dropped or self.frames_after_damage)


def read_damaged(fd: int, page_size: int) -> DamagedLog:
    """Read every committed page of the log, also those that SQLite would ignore.

    A frame's checksum continues the one stored in the previous frame. So a frame can be verified
    although an earlier one is damaged, where SQLite stops. Frames from before the log was
    restarted have other salts: a sound log ends there.
    """
    log = DamagedLog()
    size = os.fstat(fd).st_size
    head = os.pread(fd, LOG_HEAD, 0)
    count = (size - LOG_HEAD) // (FRAME + page_size)
    if len(head) < LOG_HEAD or count < 1:
        return log
    magic, _, own_page_size = struct.unpack_from(">3I", head)
    before: tuple[int, int] | None = None
    if magic in (LITTLE, BIG):
        if own_page_size != page_size:
            return log
        order = ">" if magic == BIG else "<"
        walk: LogWalk | None = LogWalk(fd, size, page_size, head[16:24], order)
        stored: tuple[int, int] = struct.unpack_from(">2I", head, 24)
        before = stored if checksum(head[:24], (0, 0), order) == stored else None
    if before is None:
        walk = _guess_walk(fd, size, page_size, count)
    return _read_frames(walk, log, count, before) if walk is not None else log


def _read_frames(
    walk: LogWalk, log: DamagedLog, count: int, before: tuple[int, int] | None
) -> DamagedLog:
    """Collect the valid frames; `before` is the checksum in the header, None if it is damaged."""
    pending: dict[int, int] = {}
    unbroken = before is not None
    hurt = False
    for number in range(count):
        frame = os.pread(walk.fd, FRAME, walk.place(number))
        if len(frame) < FRAME:
            break
        page, commit = struct.unpack_from(">2I", frame)
        stored: tuple[int, int] = struct.unpack_from(">2I", frame, 16)
        if frame[8:16] != walk.salts or not page:
            if unbroken:
                break
            before = stored
            continue
        log.frames += 1
        # The first frame after a damaged header cannot be verified.
        good = before is None or walk.sums(number, frame, before) is not None
        before = stored
        if not good:
            unbroken, hurt = False, True
            log.dropped += 1
            continue
        log.frames_after_damage += not unbroken
        pending[page] = walk.place(number) + FRAME
        if commit:
            log.places.update(pending)
            pending.clear()
            hurt = False
            log.pages = commit
    if hurt:
        log.places.update(pending)  # the damaged frame may have been their commit
    return log


def _guess_walk(fd: int, size: int, page_size: int, count: int) -> LogWalk | None:
    """Guess the salts and the byte order of a log with a damaged header."""
    step = FRAME + page_size
    heads = [os.pread(fd, FRAME, LOG_HEAD + n * step) for n in range(min(count, 20_000))]
    ((salts, seen),) = Counter(head[8:16] for head in heads).most_common(1)
    if seen < 2 and count > 1:
        return None
    for number in range(1, min(count, 200)):
        if heads[number][8:16] == salts == heads[number - 1][8:16]:
            before: tuple[int, int] = struct.unpack_from(">2I", heads[number - 1], 16)
            for order in "<>":
                walk = LogWalk(fd, size, page_size, salts, order)
                if walk.sums(number, heads[number], before) is not None:
                    return walk
    return None


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
        self.undo = read_journal(journal, self.page_size) if journal is not None else NO_JOURNAL
        if self.undo.page_size != self.page_size:
            self.undo = NO_JOURNAL  # of another database
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
            raise CouldNotLook(reason(error, source)) from error
        yield image
