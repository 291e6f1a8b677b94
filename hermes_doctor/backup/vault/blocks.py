"""Store a large file as an earlier whole copy (the base) and the blocks that changed since.

A database of a gigabyte changes by a few pages a day. Most file systems cannot share a part of a
file, so the changed blocks are kept in a separate file. Each backup's folder has both, the base as
a hard link: no backup needs another.

The file of changes begins with a line that identifies it. Then come runs of bytes in order, each
with its offset and length. A last run of length zero marks the end of the whole file.

The digests of the chunks of a base, which an older backup recorded, are used again after checks. An
older manifest may be wrong although its seal is right. So the chunk digests must combine to the
digest of the whole file, which `backup verify` compares with the content; and a random few are
compared with the content each time, in case both are wrong.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.vault.manifest import BASE, CHANGED, BackupEntry
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import digests, disk, limits, sparse_files
from hermes_doctor.core.system.digests import CHUNK
from hermes_doctor.core.system.files import MEGABYTE, open_regular
from hermes_doctor.core.system.privileges import as_owner_of

if TYPE_CHECKING:
    import mmap


MIN_SIZE = 16 * MEGABYTE
"""Smaller files are copied whole."""
MAX_CHANGED_SHARE = 0.3
"""Fraction of a file; if more has changed, a new whole copy is made."""
BLOCK = 4096
KEPT = 4 * MEGABYTE
"""Bytes of a mapped file that stay in memory behind the current position."""
_MAGIC = b"hermes-doctor/blocks/1\n"
_RUN = struct.Struct(">QQ")


class BlocksResult(NamedTuple):
    """The result of writing a file of changes."""

    sha256: str
    """The digest of the whole file, by chunks (`digests`)."""
    size: int
    changes: str
    """The SHA-256 of the file of changes."""
    pieces: str
    """The known digests of the base's chunks (`digests.written`)."""
    same: bool
    """Whether the file equals its base."""


def chunks(fd: int) -> Iterator[bytes]:
    """Read an open file in chunks of one length, except for the last."""
    at = 0
    while chunk := os.pread(fd, CHUNK, at):
        while len(chunk) < CHUNK and (more := os.pread(fd, CHUNK - len(chunk), at + len(chunk))):
            chunk += more
        yield chunk
        at += len(chunk)


_kept: list[MappedBase] = []
"""Keeps maps open until the process ends, because unmapping takes long."""


class MappedBase:
    """A memory-mapped base that is compared with a file without copying either.

    Only for worker processes: if the disk fails, reading a map kills the process. Raises OSError if
    there is no memory for a map.
    """

    def __init__(self, base: int) -> None:
        from ctypes import CDLL, c_size_t, c_void_p

        self._base = _map(base)
        self._other: tuple[int, Map] | None = None
        _kept.append(self)
        self._differ = CDLL(None).memcmp  # releases the GIL
        self._differ.argtypes = (c_void_p, c_void_p, c_size_t)

    def holds(self, fd: int, start: int, end: int) -> bool:
        """Whether a range of a file has the same bytes in the base."""
        if self._other is None or self._other[0] != fd:
            self._other = fd, _map(fd)
        here, there = self._base, self._other[1]
        if end > min(len(here), len(there)):
            return False
        here.let_go(start)
        there.let_go(start)
        return not self._differ(here.address + start, there.address + start, end - start)

    def has(self, data: bytes, offset: int) -> bool:
        """Whether the base has these bytes at this offset."""
        here = self._base
        here.let_go(offset)
        inside = offset + len(data) <= len(here)
        return inside and not self._differ(here.address + offset, data, len(data))

    def stretch(self, span: range) -> memoryview:
        """The bytes of the base in this range."""
        self._base.let_go(span.start)
        return memoryview(self._base.mapping)[span.start : span.stop]


class Map:
    """A memory-mapped file and its address."""

    def __init__(self, mapping: mmap.mmap) -> None:
        from ctypes import addressof, c_char

        self.mapping = mapping
        self.address = addressof(c_char.from_buffer(mapping)) if len(mapping) else 0
        self._released = 0

    def let_go(self, start: int) -> None:
        """Release the memory of pages far before `start`; they can be read from the file again."""
        import mmap

        until = (start - KEPT) // mmap.PAGESIZE * mmap.PAGESIZE
        if until - self._released >= KEPT and hasattr(self.mapping, "madvise"):
            self.mapping.madvise(mmap.MADV_DONTNEED, self._released, until - self._released)
            self._released = until

    def __len__(self) -> int:
        return len(self.mapping)


def _map(fd: int) -> Map:
    import mmap

    # A private map that is never written to: ctypes gives the address only of a writable one.
    limits.allow_map(os.fstat(fd).st_size)
    return Map(mmap.mmap(fd, 0, access=mmap.ACCESS_COPY))


def write(
    content: Iterable[bytes | range],
    base: int,
    target: int,
    max_bytes: int,
    known: Sequence[bytes | None] = (),
    mapped: MappedBase | None = None,
) -> BlocksResult | None:
    """Write the blocks that differ from the base; return None if they exceed `max_bytes`.

    A range in the content stands for bytes that equal the base, which is then `mapped`.
    `known` are the digests of the base's chunks (`chunk_digests`); without them the base is hashed.
    """
    size = os.fstat(base).st_size
    try:
        then = list(known or digests.chunks_of_file(base))
    except OSError:  # an unreadable base is useless
        return None
    each: list[bytes] = []
    changes, at, written = digests.sha256(), 0, 0

    def put(data: bytes) -> None:
        disk.write(target, data)
        changes.update(data)

    put(_MAGIC)
    for chunk in content:
        end, number = at + len(chunk), at // CHUNK
        data: bytes | memoryview
        if isinstance(chunk, range):
            assert mapped is not None
            data, different = mapped.stretch(chunk), []
        else:
            data, different = chunk, list(_different(chunk, read_chunk(base, len(chunk), at)))
        same = not different and end == min(at + CHUNK, size)  # up to the end of the base's chunk
        each.append((then[number] if same else None) or digests.of(data))
        if same:
            then[number] = each[-1]
        for start, stop in different:
            put(_RUN.pack(at + start, stop - start))
            put(bytes(data[start:stop]))
            written += stop - start
        at = end
        if written > max_bytes:
            return None
    put(_RUN.pack(at, 0))
    whole, is_base = digests.combine(each), at == size and not written
    return BlocksResult(whole, at, changes.hexdigest(), digests.to_text(then), is_base)


def read_chunk(base: int, length: int, offset: int) -> bytes:
    """Read a chunk of the base; empty if it cannot be read."""
    try:
        return os.pread(base, length, offset)
    except OSError:
        return b""


def _different(now: bytes, then: bytes) -> Iterator[tuple[int, int]]:
    """Yield the ranges in which two chunks differ, in whole blocks."""
    if now == then:
        return
    start: int | None = None
    for at in range(0, len(now), BLOCK):
        same = now[at : at + BLOCK] == then[at : at + BLOCK]
        if not same and start is None:
            start = at
        elif same and start is not None:
            yield start, at
            start = None
    if start is not None:
        yield start, len(now)


class ChangedRun(NamedTuple):
    """A run of changed bytes in the file of changes."""

    start: int
    """The offset in the whole file."""
    length: int
    """Zero for the last run, which marks the end of the whole file."""
    offset: int
    """The offset in the file of changes."""


def runs(changed: int) -> Iterator[ChangedRun]:
    """Yield the runs of a file of changes; raise CouldNotLook if it is damaged."""
    at, place = 0, len(_MAGIC)
    if os.pread(changed, place, 0) != _MAGIC:
        raise CouldNotLook("its list of changes cannot be read")
    while True:
        head = os.pread(changed, _RUN.size, place)
        if len(head) < _RUN.size:
            raise CouldNotLook("its list of changes is incomplete")
        start, length = _RUN.unpack(head)
        place += _RUN.size
        if start < at:
            raise CouldNotLook("its list of changes is out of order")
        yield ChangedRun(start, length, place)
        if not length:
            return
        at, place = start + length, place + length


def read(folder: Path) -> Iterator[bytes]:
    """Yield the whole file from its two parts in a folder; raise CouldNotLook if damaged."""
    with open_as_owner(folder / BASE) as base, open_as_owner(folder / CHANGED) as changed:
        at = 0
        for run in runs(changed):
            yield from _part(base, at, run.start)
            yield from _part(changed, run.offset, run.offset + run.length)
            at = run.start + run.length


def _part(fd: int, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        chunk = os.pread(fd, min(CHUNK, end - start), start)
        if not chunk:
            raise CouldNotLook("one of its parts is too short")
        yield chunk
        start += len(chunk)


@contextmanager
def open_as_owner(path: Path) -> Iterator[int]:
    """Open a file for reading with the privileges of the owner of its place."""
    with as_owner_of(path) as here:
        fd = open_regular(here, follow=False)
    try:
        yield fd
    finally:
        os.close(fd)


def copy(folder: Path, target: int, like: str | None) -> str:
    """Write the whole file from its two parts; return its digest, in the format of `like`.

    Zeros become holes if the base is sparse.
    """
    with open_as_owner(folder / BASE) as base:
        is_sparse = sparse_files.is_sparse(os.fstat(base))
    write = disk.write_or_skip if is_sparse else disk.write
    digest = _summed(folder, like, lambda chunk: write(target, chunk))
    if is_sparse:
        disk.truncate_here(target)
    return digest


def digest_of(copy: Path, entry: BackupEntry, progress: disk.Progress | None = None) -> str:
    """The digest of an entry's content in the backup, in the format of the recorded digest."""
    if not entry.blocks:
        return disk.digest(copy, progress, entry.sha256)
    return _summed(copy, entry.sha256, lambda chunk: progress(len(chunk)) if progress else None)


def _summed(folder: Path, like: str | None, use: Callable[[bytes], None]) -> str:
    total = digests.new_like(like)
    for chunk in read(folder):
        total.update(chunk)
        use(chunk)
    return total.hexdigest()


SHARE = 32
"""One in so many chunks is hashed again each time."""

ChunkDigests = Sequence[bytes | None]
"""The digests of the chunks of a base, in order; None for an unknown one."""


def chunk_digests(copy: Path, entry: BackupEntry) -> ChunkDigests:
    """The checked chunk digests of a whole copy or of a copy's base; empty if they are wrong."""
    try:
        with open_as_owner(copy / BASE if entry.blocks else copy) as base:
            known = _borne_out(copy, entry, base)
            return known if _fit(known, base) else ()
    except (CouldNotLook, OSError):
        return ()


def contradicts(copy: Path, entry: BackupEntry) -> bool:
    """Whether the chunk digests do not combine to the digest of the whole, so one is wrong."""
    if not entry.pieces or not (entry.sha256 or "").startswith(digests.PREFIX):
        return False
    try:
        with open_as_owner(copy / BASE if entry.blocks else copy) as base:
            return not _borne_out(copy, entry, base)
    except (CouldNotLook, OSError):
        return True


def _borne_out(copy: Path, entry: BackupEntry, base: int) -> ChunkDigests:
    """The chunk digests if they combine to the digest of the whole; else empty."""
    then = digests.from_text(entry.pieces, os.fstat(base).st_size)
    if not then:
        return ()
    own = _own(copy, entry, base) if entry.blocks else {}
    count = -(-entry.size // CHUNK)
    if any(n not in own for n in range(len(then), count)):
        return ()
    each = [own[n] if n in own else then[n] for n in range(count)]
    if digests.combine(each) != entry.sha256:
        return ()
    return [None if n in own or n >= count else digest for n, digest in enumerate(then)]


def _own(copy: Path, entry: BackupEntry, base: int) -> dict[int, bytes]:
    """The digests of the chunks in which a file in blocks differs from its base."""
    with open_as_owner(copy / CHANGED) as changed:
        if entry.size > os.fstat(base).st_size + os.fstat(changed).st_size:
            raise CouldNotLook("{copy}: a part is too short", copy=copy.name)
        laid: dict[int, list[ChangedRun]] = {}
        for run in runs(changed):
            end = run.start + run.length
            if end > entry.size or (not run.length and end < entry.size):
                raise CouldNotLook("{copy}: its parts have the wrong length", copy=copy.name)
            for number in range(run.start // CHUNK, -(-end // CHUNK)):
                laid.setdefault(number, []).append(run)
        own = {}
        for number, over in laid.items():
            start, stop = number * CHUNK, min((number + 1) * CHUNK, entry.size)
            piece = bytearray(os.pread(base, stop - start, start).ljust(stop - start, b"\0"))
            for run in over:
                low, high = max(run.start, start), min(run.start + run.length, stop)
                part = os.pread(changed, high - low, run.offset + low - run.start)
                piece[low - start : high - start] = part
            own[number] = digests.of(piece)
        return own


def _fit(known: ChunkDigests, base: int) -> bool:
    """Whether a random few of the digests match the content.

    A chunk that cannot be read does not count against the others.
    """
    step = min(SHARE, len(known)) or 1
    for number in range(os.urandom(1)[0] % step, len(known), step):
        piece = read_chunk(base, CHUNK, number * CHUNK)
        if known[number] and piece and digests.of(piece) != known[number]:
            return False
    return True
