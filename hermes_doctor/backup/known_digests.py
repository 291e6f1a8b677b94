"""Reuse the chunk digests that an older backup recorded for a copy, after checking them.

An older manifest may be wrong although its seal is right. A wrong digest that is reused unchecked
would make the new backup wrong, too. So the chunk digests must combine to the digest of the whole
file, which `backup verify` compares with the content; and a random few are compared with the
content each time, in case both are wrong.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup import blocks
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.manifest import BASE, CHANGED
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import digests
from hermes_doctor.system.digests import CHUNK

SHARE = 32
"""One in so many chunks is hashed again each time."""

ChunkDigests = Sequence[bytes | None]
"""The digests of the chunks of a base, in order; None for an unknown one."""


def chunk_digests(copy: Path, entry: BackupEntry) -> ChunkDigests:
    """The checked chunk digests of a whole copy or of a copy's base; empty if they are wrong."""
    try:
        with blocks.open_as_owner(copy / BASE if entry.blocks else copy) as base:
            found = _borne_out(copy, entry, base)
            return found if _fit(found, base) else ()
    except (CouldNotLook, OSError):
        return ()


def contradicts(copy: Path, entry: BackupEntry) -> bool:
    """Whether the chunk digests do not combine to the digest of the whole, so one is wrong."""
    if not entry.pieces or not (entry.sha256 or "").startswith(digests.PREFIX):
        return False
    try:
        with blocks.open_as_owner(copy / BASE if entry.blocks else copy) as base:
            return not _borne_out(copy, entry, base)
    except (CouldNotLook, OSError):
        return True


def _borne_out(copy: Path, entry: BackupEntry, base: int) -> ChunkDigests:
    """The chunk digests if they combine to the digest of the whole; else empty."""
    size = os.fstat(base).st_size
    then = digests.from_text(entry.pieces, size)
    if not then:
        return ()
    if not entry.blocks:
        return then if digests.combine(then) == entry.sha256 else ()
    own = _own(copy, entry, base)
    count = -(-entry.size // CHUNK)
    if any(n not in own for n in range(len(then), count)):
        return ()
    each = [own[n] if n in own else then[n] for n in range(count)]
    if digests.combine(each) != entry.sha256:
        return ()
    return [None if n in own or n >= count else one for n, one in enumerate(then)]


def _own(copy: Path, entry: BackupEntry, base: int) -> dict[int, bytes]:
    """The digests of the chunks in which a file in blocks differs from its base."""
    with blocks.open_as_owner(copy / CHANGED) as changed:
        if entry.size > os.fstat(base).st_size + os.fstat(changed).st_size:
            raise CouldNotLook(text("{copy}: a part is too short", copy=copy.name))
        laid: dict[int, list[blocks.ChangedRun]] = {}
        for run in blocks.runs(changed):
            end = run.start + run.length
            if end > entry.size or (not run.length and end < entry.size):
                raise CouldNotLook(text("{copy}: its parts have the wrong length", copy=copy.name))
            for number in range(run.start // CHUNK, -(-end // CHUNK)):
                laid.setdefault(number, []).append(run)
        found = {}
        for number, over in laid.items():
            start, stop = number * CHUNK, min((number + 1) * CHUNK, entry.size)
            piece = bytearray(os.pread(base, stop - start, start).ljust(stop - start, b"\0"))
            for run in over:
                low, high = max(run.start, start), min(run.start + run.length, stop)
                part = os.pread(changed, high - low, run.offset + low - run.start)
                piece[low - start : high - start] = part
            found[number] = digests.of(piece)
        return found


def _fit(known: ChunkDigests, base: int) -> bool:
    """Whether a random few of the digests match the content.

    A chunk that cannot be read does not count against the others.
    """
    step = min(SHARE, len(known)) or 1
    for number in range(os.urandom(1)[0] % step, len(known), step):
        piece = blocks.read_chunk(base, CHUNK, number * CHUNK)
        if known[number] and piece and digests.of(piece) != known[number]:
            return False
    return True
