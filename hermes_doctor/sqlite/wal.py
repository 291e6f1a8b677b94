"""Parse a write-ahead log, up to the first invalid frame, and a rollback journal.

A rollback journal has the original versions of pages that a transaction overwrote.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import limits
from hermes_doctor.sqlite.header import PAGE_SIZES

LOG_HEAD, FRAME = 32, 24
MOST = 8192
"""The most frames that are read after a broken one."""
LITTLE, BIG = 0x377F0682, 0x377F0683


class WriteAheadLog(NamedTuple):
    """The content of a write-ahead log, as far as it was read."""

    size: int
    page_size: int = 0
    salts: bytes = b""
    head: str = "sound"
    """The state of its header: sound, empty, or damaged (then SQLite ignores the whole log)."""
    frames: int = 0
    """Consecutive frames with the current salts, from the first frame."""
    committed: int = 0
    """How many of them are valid: up to the last commit."""
    pages: Mapping[int, int] = {}
    """By page number: the offset of its newest committed version in the log."""
    db_pages: int = 0
    """The size of the database after the last commit, in pages."""
    broken: int | None = None
    """The frame (from 0) with a wrong checksum: SQLite ignores it and all later frames."""
    lost_commits: int = 0
    """Transactions after the broken frame that are complete in themselves."""
    verified: bool = True
    """Every checksum was verified; if False, the time ran out before the end."""


EMPTY = WriteAheadLog(0, head="empty")


def read(
    fd: int,
    *,
    seconds: float | None = None,
    max_frames: int | None = None,
    committed: int | None = None,
    live: bool = False,
) -> WriteAheadLog:
    """Read a log; `committed` is the number of committed frames, if it is known from elsewhere.

    The checksums of these frames are not verified. With `live` the number comes from a running
    writer, and later frames are ignored. Without `committed` every checksum is verified, as far as
    `seconds` allows. At most `max_frames` frames are read.
    """
    size = os.fstat(fd).st_size
    if size < LOG_HEAD:
        return EMPTY
    head = os.pread(fd, LOG_HEAD, 0)
    if len(head) < LOG_HEAD:  # its writer has truncated it since
        return EMPTY
    magic, _, page_size = struct.unpack_from(">III", head)
    if magic not in (LITTLE, BIG) or page_size not in PAGE_SIZES:
        return _headless(fd, size)
    order = "<" if magic == LITTLE else ">"
    sums = checksum(head[:24], (0, 0), order)
    if head[24:32] != struct.pack(">II", *sums):
        return _headless(fd, size)
    walk = LogWalk(fd, size, page_size, head[16:24], order)
    return walk.run(sums, seconds, max_frames, committed, live)


class LogWalk:
    """One pass over the frames of a log."""

    def __init__(self, fd: int, size: int, page_size: int, salts: bytes, order: str) -> None:
        self.fd = fd
        self.size = size
        self.page_size = page_size
        self.salts = salts
        self.order = order

    def run(
        self,
        checksums: tuple[int, int],
        seconds: float | None,
        max_frames: int | None,
        committed_frames: int | None,
        live: bool,
    ) -> WriteAheadLog:
        end = None if seconds is None else time.monotonic() + limits.stretch(seconds)
        whole = (self.size - LOG_HEAD) // (FRAME + self.page_size)
        slots = min(whole, max_frames) if max_frames is not None else whole
        pages: dict[int, int] = {}
        pending: dict[int, int] = {}
        number = committed = db_pages = 0
        broken: int | None = None
        verified = slots == whole
        for number in range(slots):
            if committed_frames is not None and number >= committed_frames:
                broken = None if live else number
                break
            frame = self.head(number)
            if frame is None:
                break
            if committed_frames is None and verified:
                if end is not None and number % 16 == 0 and time.monotonic() > end:
                    verified = False
                else:
                    sums = self.sums(number, frame, checksums)
                    if sums is None:
                        broken = number
                        break
                    checksums = sums
            page, commit = struct.unpack_from(">II", frame)
            pending[page] = self.place(number) + FRAME
            if commit:
                pages.update(pending)
                pending.clear()
                committed, db_pages = number + 1, commit
        else:
            number = slots
        lost = self.commits_after(broken, min(slots, broken + MOST)) if broken is not None else 0
        return WriteAheadLog(
            self.size,
            self.page_size,
            self.salts,
            frames=number,
            committed=committed,
            pages={page: at for page, at in pages.items() if 0 < page <= db_pages},
            db_pages=db_pages,
            broken=broken if lost else None,
            lost_commits=lost,
            verified=verified,
        )

    def place(self, number: int) -> int:
        """The offset of a frame in the log."""
        return LOG_HEAD + number * (FRAME + self.page_size)

    def head(self, number: int) -> bytes | None:
        """The header of a frame; None if its salts are not the current ones."""
        frame = os.pread(self.fd, FRAME, self.place(number))
        return frame if len(frame) == FRAME and frame[8:16] == self.salts else None

    def sums(self, number: int, frame: bytes, before: tuple[int, int]) -> tuple[int, int] | None:
        """The checksums after this frame; None if the frame stores different ones."""
        data = os.pread(self.fd, self.page_size, self.place(number) + FRAME)
        if len(data) < self.page_size:
            return None
        sums = checksum(data, checksum(frame[:8], before, self.order), self.order)
        return sums if frame[16:24] == struct.pack(">II", *sums) else None

    def commits_after(self, broken: int, slots: int) -> int:
        """Count the commit frames after a broken frame that match the frame before them.

        A frame's checksum continues the one stored in the previous frame, so each frame can be
        verified although the chain is broken. Frames of a transaction that was rolled back contain
        no commit.
        """
        commits = 0
        last = self.head(broken)
        for number in range(broken + 1, slots):
            frame = self.head(number)
            if frame is None:
                if last is None:
                    break
                last = None
                continue
            if last is not None and frame[4:8] != b"\0\0\0\0":
                before: tuple[int, int] = struct.unpack_from(">II", last, 16)
                commits += self.sums(number, frame, before) is not None
            last = frame
        return commits


def _headless(fd: int, size: int) -> WriteAheadLog:
    """Read a log with a damaged header; page size and salts come from its frames."""
    for page_size in (4096, *sorted(PAGE_SIZES - {4096})):
        step = FRAME + page_size
        whole = (size - LOG_HEAD) // step
        if whole < 2:
            continue
        first, second = (os.pread(fd, FRAME, LOG_HEAD + n * step) for n in (0, 1))
        if first[8:16] != second[8:16] or not any(first[8:16]):
            continue
        for order in "<>":
            walk = LogWalk(fd, size, page_size, first[8:16], order)
            before: tuple[int, int] = struct.unpack_from(">II", first, 16)
            if walk.sums(1, second, before) is not None:
                lost = walk.commits_after(0, min(whole, MOST))
                return WriteAheadLog(
                    size, page_size, first[8:16], "damaged", whole, lost_commits=lost
                )
    return WriteAheadLog(size, head="damaged")


def checksum(data: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Continue SQLite's checksum of a write-ahead log."""
    first, second = before
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for a, b in zip(words, words, strict=True):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return first, second


class ShmHeader(NamedTuple):
    """The header of a -shm file: the state of the write-ahead log according to its users."""

    change: int
    committed: int
    salts: bytes
    backfill: int
    """How many frames a checkpoint has copied, or was about to copy, into the database."""
    done: int
    """How many of them are copied completely."""

    @classmethod
    def parse(cls, head: bytes) -> ShmHeader | None:
        """Parse the first 136 bytes; None if the file is not in use or is being written."""
        if len(head) < 136 or head[:48] != head[48:96] or not head[12]:
            return None
        version, _, change = struct.unpack_from("=III", head)
        if version != 3007000:
            return None
        (committed,) = struct.unpack_from("=I", head, 16)
        (done,) = struct.unpack_from("=I", head, 96)
        (begun,) = struct.unpack_from("=I", head, 128)
        return cls(change, committed, head[32:40], max(done, begun), done)


JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
JOURNAL_HEAD = 28
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


NO_JOURNAL = Undo()


def read_journal(fd: int, page_size: int) -> Undo:
    """Read a journal as SQLite does: up to the first invalid record.

    `page_size` is that of the database, for journals that do not contain it.
    """
    length = os.fstat(fd).st_size
    undo = NO_JOURNAL
    places: dict[int, int] = {}
    whole, at = True, 0
    while head := _journal_head(fd, at, page_size):
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
    return _journal_head(fd, 0, min(PAGE_SIZES)) is not None


def _journal_head(fd: int, at: int, page_size: int) -> tuple[int, int, int, int, int] | None:
    """Parse a header: record count, nonce, database pages, sector size and page size."""
    head = os.pread(fd, JOURNAL_HEAD, at)
    if len(head) < JOURNAL_HEAD or head[:8] != JOURNAL_MAGIC:
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
        total = nonce + sum(page[place] for place in range(size - 200, 0, -200))  # every 200th byte
        if not number or total & 0xFFFFFFFF != stored:
            return done
        if number <= pages:  # later pages are truncated anyway
            places.setdefault(number, at + 4)
        at += size + 8
    return most


def _shared(fd: int, length: int) -> bool:
    """Whether it ends with the name of a super-journal."""
    if length < JOURNAL_HEAD + 16:
        return False
    tail = os.pread(fd, 16, length - 16)
    name = struct.unpack_from(">I", tail)[0] if len(tail) == 16 else 0
    return tail[8:] == JOURNAL_MAGIC and 0 < name < min(length, _LONGEST_NAME)


def rolled_back(fd: int, undo: Undo, data: bytes) -> bytes:
    """The whole database in memory, after playing the journal back."""
    size = undo.page_size
    out = bytearray(data[: undo.pages * size])
    out.extend(bytes(undo.pages * size - len(out)))
    for number in undo.places:
        out[(number - 1) * size : number * size] = undo.page(fd, number) or bytes(size)
    return bytes(out)
