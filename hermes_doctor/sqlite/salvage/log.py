"""The pages in a write-ahead log, also those that SQLite gives up on."""

from __future__ import annotations

import os
import struct
import sys
from array import array
from collections import Counter
from dataclasses import dataclass, field

MAGICS = (0x377F0682, 0x377F0683)
HEAD, FRAME = 32, 24


@dataclass
class Log:
    """Where the newest version of each page lies in the log, and how far it can be trusted."""

    places: dict[int, int] = field(default_factory=dict)
    """By page number: the offset of its image in the log."""
    frames: int = 0
    dropped: int = 0
    """Frames of this log that are damaged themselves."""
    beyond: int = 0
    """Frames used although SQLite would not have come as far."""
    pages: int = 0
    """The size of the database after the last commit, in pages."""

    @property
    def damaged(self) -> bool:
        """SQLite sees less in this log than was committed."""
        return bool(self.dropped or self.beyond)


def read(fd: int, page_size: int) -> Log:
    """Every committed page in the log.

    A frame's checksum continues from the one stored in the frame before it. So a frame can be
    proved although an earlier one is damaged, where SQLite stops for good. Frames of an older
    generation have other salts: that is how a healthy log ends.
    """
    log = Log()
    head = os.pread(fd, HEAD, 0)
    step = FRAME + page_size
    count = (os.fstat(fd).st_size - HEAD) // step
    if len(head) < HEAD or count < 1:
        return log
    magic, _, size = struct.unpack_from(">3I", head)
    big = bool(magic & 1)
    proven = (
        magic in MAGICS
        and size == page_size
        and _sum(head[:24], 0, 0, big=big) == struct.unpack_from(">2I", head, 24)
    )
    if magic in MAGICS and size != page_size:
        return log
    if proven:
        salts = head[16:24]
    else:
        guess = _guess(fd, count, step)
        if guess is None:
            return log
        salts, big = guess
    pending: dict[int, int] = {}
    before = struct.unpack_from(">2I", head, 24) if proven else None
    chain = proven
    hurt = False
    for number in range(count):
        at = HEAD + number * step
        frame = os.pread(fd, step, at)
        if len(frame) < step:
            break
        page, commit = struct.unpack_from(">2I", frame)
        if frame[8:16] != salts or not page:
            if chain:
                break
            before = struct.unpack_from(">2I", frame, 16)
            continue
        log.frames += 1
        stored = struct.unpack_from(">2I", frame, 16)
        good = before is not None and _frame(frame, before, big=big) == stored
        if before is None:
            good = True  # the first one, whose predecessor is the damaged head
        before = stored
        if not good:
            chain, hurt = False, True
            log.dropped += 1
            continue
        log.beyond += not chain
        pending[page] = at + FRAME
        if commit:
            log.places.update(pending)
            pending.clear()
            hurt = False
            log.pages = commit
    if hurt:
        log.places.update(pending)  # the frame that committed them may be the damaged one
    return log


def _frame(frame: bytes, before: tuple[int, ...], *, big: bool) -> tuple[int, int]:
    first, second = _sum(frame[:8], before[0], before[1], big=big)
    return _sum(frame[FRAME:], first, second, big=big)


def _sum(data: bytes, first: int, second: int, *, big: bool) -> tuple[int, int]:
    """SQLite's checksum of the log, continued."""
    words = array("I")
    words.frombytes(data)
    if (sys.byteorder == "big") != big:
        words.byteswap()
    even, odd = words[::2], words[1::2]
    for one, two in zip(even, odd, strict=True):
        first += one + second
        second += two + (first & 0xFFFFFFFF)
        first &= 0xFFFFFFFF
        second &= 0xFFFFFFFF
    return first, second


def _guess(fd: int, count: int, step: int) -> tuple[bytes, bool] | None:
    """The salts and the byte order of a log whose head is damaged."""
    heads = [os.pread(fd, FRAME, HEAD + n * step) for n in range(min(count, 20_000))]
    ((salts, seen),) = Counter(head[8:16] for head in heads).most_common(1)
    if seen < 2 and count > 1:
        return None
    for number in range(1, min(count, 200)):
        frame = os.pread(fd, step, HEAD + number * step)
        if frame[8:16] != salts or heads[number - 1][8:16] != salts or len(frame) < step:
            continue
        before = struct.unpack_from(">2I", heads[number - 1], 16)
        for big in (False, True):
            if _frame(frame, before, big=big) == struct.unpack_from(">2I", frame, 16):
                return salts, big
    return None
