"""Parse a write-ahead log: its header, its frames, and the first invalid frame."""

from __future__ import annotations

import os
import struct
import time
from collections import Counter
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
    walk = _Walk(fd, size, page_size, head[16:24], order)
    return walk.run(sums, seconds, max_frames, committed, live)


class _Walk:
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
            walk = _Walk(fd, size, page_size, first[8:16], order)
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
        walk: _Walk | None = _Walk(fd, size, page_size, head[16:24], order)
        stored: tuple[int, int] = struct.unpack_from(">2I", head, 24)
        before = stored if checksum(head[:24], (0, 0), order) == stored else None
    if before is None:
        walk = _guess_walk(fd, size, page_size, count)
    return _read_frames(walk, log, count, before) if walk is not None else log


def _read_frames(
    walk: _Walk, log: DamagedLog, count: int, before: tuple[int, int] | None
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


def _guess_walk(fd: int, size: int, page_size: int, count: int) -> _Walk | None:
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
                walk = _Walk(fd, size, page_size, salts, order)
                if walk.sums(number, heads[number], before) is not None:
                    return walk
    return None
