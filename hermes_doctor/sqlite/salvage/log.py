"""Parse a damaged write-ahead log, including valid frames that SQLite would ignore."""

from __future__ import annotations

import os
import struct
from collections import Counter
from dataclasses import dataclass, field

from hermes_doctor.sqlite.wal import checksum

MAGICS = (0x377F0682, 0x377F0683)
HEAD, FRAME = 32, 24


@dataclass
class DamagedLog:
    """The newest version of each page in a write-ahead log, and how damaged the log is."""

    places: dict[int, int] = field(default_factory=dict)
    """By page number: the offset of its content in the log."""
    frames: int = 0
    dropped: int = 0
    """Damaged frames of this log."""
    frames_after_damage: int = 0
    """Valid frames after a damaged one, which SQLite would not read."""
    pages: int = 0
    """The size of the database after the last commit, in pages."""

    @property
    def damaged(self) -> bool:
        """Whether SQLite reads less from this log than was committed."""
        return bool(self.dropped or self.frames_after_damage)


def read(fd: int, page_size: int) -> DamagedLog:
    """Read every committed page of the log.

    A frame's checksum continues the one stored in the previous frame. So a frame can be verified
    although an earlier one is damaged, where SQLite stops. Frames from before the log was
    restarted have other salts: a sound log ends there.
    """
    log = DamagedLog()
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
        and checksum(head[:24], (0, 0), ">" if big else "<") == struct.unpack_from(">2I", head, 24)
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
            good = True  # the first frame follows the damaged header
        before = stored
        if not good:
            chain, hurt = False, True
            log.dropped += 1
            continue
        log.frames_after_damage += not chain
        pending[page] = at + FRAME
        if commit:
            log.places.update(pending)
            pending.clear()
            hurt = False
            log.pages = commit
    if hurt:
        log.places.update(pending)  # the damaged frame may have been their commit
    return log


def _frame(frame: bytes, before: tuple[int, ...], *, big: bool) -> tuple[int, int]:
    order = ">" if big else "<"
    return checksum(frame[FRAME:], checksum(frame[:8], (before[0], before[1]), order), order)


def _guess(fd: int, count: int, step: int) -> tuple[bytes, bool] | None:
    """Guess the salts and the byte order of a log with a damaged header."""
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
