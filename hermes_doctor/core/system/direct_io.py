"""Read and write files with O_DIRECT, bypassing the page cache.

The disk can hold other bytes than the page cache, so a backup is verified by what the disk holds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.core.system import sparse_files

if TYPE_CHECKING:
    import mmap

CHUNK = 1024 * 1024
BLOCK = 4 * CHUNK
LARGE = 16 * CHUNK
"""Bytes from which a file is read ahead in a second thread."""
PAGE = 4096
_here = threading.local()
_DIRECT = getattr(os, "O_DIRECT", 0)


def blocks(fd: int) -> Iterator[memoryview]:
    """Yield the file block by block, read from the disk where that is possible.

    All blocks share one buffer: the next block, or another such read in the thread, overwrites it.
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
    if not enable_direct_io(fd):
        _forget(fd)
    room, at = memoryview(Buffers.of_thread().piece), 0  # a new buffer costs as much as the read
    while at < size and (count := _read(fd, room[: whole_pages(size - at)], at)):
        yield room[:count]
        at += count


def _ahead(fd: int) -> Iterator[memoryview]:
    """Yield the blocks of a file; each is read while the caller uses the previous one."""
    from concurrent.futures import ThreadPoolExecutor

    here, other = _room(BLOCK), _room(BLOCK)
    at = 0
    if not enable_direct_io(fd):
        _forget(fd)
    with ThreadPoolExecutor(1) as reader:  # leaving it waits for the last read
        coming = reader.submit(_read, fd, here, at)
        while count := coming.result():
            at += count
            coming = reader.submit(_read, fd, other, at)
            yield memoryview(here)[:count]
            here, other = other, here


def whole_pages(count: int) -> int:
    """Round a byte count up to whole pages, the unit of direct I/O.

    A buffer is not made larger than that, because the kernel prepares all of it for each read.
    """
    return count + -count % PAGE


def _read(fd: int, into: mmap.mmap | memoryview, at: int) -> int:
    try:
        return os.preadv(fd, [into], at)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    disable_direct_io(fd)  # this disk does not support it, or not at this offset
    _forget(fd)
    return os.preadv(fd, [into], at)


def enable_direct_io(fd: int) -> bool:
    """Turn direct I/O on, which takes whole pages only; return False if it is unsupported."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | _DIRECT)
    except OSError:
        return False
    return bool(_DIRECT)


def disable_direct_io(fd: int) -> None:
    """Turn direct I/O off."""
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) & ~_DIRECT)


class Buffers:
    """Two page-aligned buffers: one to copy a chunk with, one to read it back into."""

    def __init__(self) -> None:
        from ctypes import CDLL, c_char

        self.piece, self.back = _room(CHUNK), _room(CHUNK)
        form = c_char * CHUNK
        self._both = form.from_buffer(self.piece), form.from_buffer(self.back)
        self._differ = CDLL(None).memcmp  # releases the GIL, so other threads can work

    @classmethod
    def of_thread(cls) -> Buffers:
        """Return the buffers of the current thread."""
        if not hasattr(_here, "rooms"):
            _here.rooms = cls()
        buffers: Buffers = _here.rooms
        return buffers

    def fill(self, fd: int) -> int:
        """Read until the buffer is full or the file ends; return the number of bytes."""
        count, view = 0, memoryview(self.piece)
        while count < CHUNK and (more := os.readv(fd, [view[count:]])):
            count += more
        return count

    def padded(self, count: int) -> memoryview:
        """Return what was read, padded with zeros to a whole page."""
        end = whole_pages(count)
        self.piece[count:end] = bytes(end - count)
        return memoryview(self.piece)[:end]

    def matches_disk(self, fd: int, offset: int, count: int) -> bool:
        """Whether the disk holds at this offset what was read; False if it cannot be read."""
        try:
            read = os.preadv(fd, [memoryview(self.back)[: whole_pages(count)]], offset)
        except OSError:
            return False
        return read == count and not self._differ(*self._both, count)


def _room(size: int) -> mmap.mmap:
    """Return a page-aligned buffer, as direct I/O needs it.

    It is private: otherwise a forked worker would write into the buffer of its parent.
    """
    import mmap

    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _forget(fd: int) -> None:
    """Tell the kernel to drop the file from the page cache."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
