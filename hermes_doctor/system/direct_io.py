"""What a file holds as the disk has it, which need not be what memory has; past the memory."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from hermes_doctor.system import sparse_files

if TYPE_CHECKING:
    import mmap

CHUNK = 1024 * 1024
BLOCK = 4 * CHUNK
LARGE = 16 * CHUNK
"""From here on it is worth going past the memory."""
PAGE = 4096
_here = threading.local()
_DIRECT = getattr(os, "O_DIRECT", 0)


def blocks(fd: int) -> Iterator[memoryview]:
    """The file block by block, read from the disk where that is possible.

    What was given is overwritten by the next, and by what else the thread reads that way.
    """
    known = os.fstat(fd)
    size = known.st_size
    if sparse_files.is_sparse(known):
        _forget(fd)
        yield from (memoryview(piece) for _, piece, _ in sparse_files.chunks(fd, 0, size))
        return
    if size >= LARGE:
        yield from _ahead(fd)
        return
    if not past_memory(fd):
        _forget(fd)
    room, at = memoryview(Rooms.of_thread().piece), 0  # used again: a new one costs as much
    while at < size and (count := _read(fd, room[: whole_pages(size - at)], at)):
        yield room[:count]
        at += count


def _ahead(fd: int) -> Iterator[memoryview]:
    """Each block is read while the one before it is used."""
    here, other = _room(BLOCK), _room(BLOCK)
    at = 0
    if not past_memory(fd):
        _forget(fd)
    with ThreadPoolExecutor(1) as reader:  # whose end waits for the last read
        coming = reader.submit(_read, fd, here, at)
        while count := coming.result():
            at += count
            coming = reader.submit(_read, fd, other, at)
            yield memoryview(here)[:count]
            here, other = other, here


def whole_pages(count: int) -> int:
    """As many bytes, or a few more: a disk takes and gives pages, and a room that is larger than
    what comes costs time, since all of it is held ready."""
    return count + -count % PAGE


def _read(fd: int, into: mmap.mmap | memoryview, at: int) -> int:
    try:
        return os.preadv(fd, [into], at)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    through_memory(fd)  # a disk that cannot, or not from here
    _forget(fd)
    return os.preadv(fd, [into], at)


def past_memory(fd: int) -> bool:
    """Have reads and writes go to the disk itself, whole pages only; False where they cannot."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | _DIRECT)
    except OSError:
        return False
    return bool(_DIRECT)


def through_memory(fd: int) -> None:
    """The opposite."""
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~_DIRECT)


class Rooms:
    """Two rooms for a piece of a file each: one to copy it by, and one to read it back into."""

    def __init__(self) -> None:
        from ctypes import CDLL, c_char

        self.piece, self.back = _room(CHUNK), _room(CHUNK)
        form = c_char * CHUNK
        self._both = form.from_buffer(self.piece), form.from_buffer(self.back)
        self._differ = CDLL(None).memcmp  # which lets other threads work meanwhile

    @classmethod
    def of_thread(cls) -> Rooms:
        """Every thread has its own."""
        if not hasattr(_here, "rooms"):
            _here.rooms = cls()
        found: Rooms = _here.rooms
        return found

    def fill(self, fd: int) -> int:
        """Read until the room is full or the file ends."""
        count, view = 0, memoryview(self.piece)
        while count < CHUNK and (more := os.readv(fd, [view[count:]])):
            count += more
        return count

    def padded(self, count: int) -> memoryview:
        """What was read, and nothing behind it up to a whole page."""
        end = whole_pages(count)
        self.piece[count:end] = bytes(end - count)
        return memoryview(self.piece)[:end]

    def held_by(self, fd: int, at: int, count: int) -> bool:
        """Whether the disk gives back at one place what was read; False if it cannot tell."""
        try:
            read = os.preadv(fd, [memoryview(self.back)[: whole_pages(count)]], at)
        except OSError:
            return False
        return read == count and not self._differ(*self._both, count)


def _room(size: int) -> mmap.mmap:
    """Whole pages, which is what a disk takes and gives; private, or a process that is forked
    would write into ours."""
    import mmap

    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _forget(fd: int) -> None:
    """Have the kernel drop what it has of the file in memory."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
