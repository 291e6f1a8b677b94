"""What a file holds as the disk has it, which need not be what memory has."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import mmap

CHUNK = 1024 * 1024
BLOCK = 4 * CHUNK
LARGE = 16 * CHUNK
"""From here on it is worth going past the memory."""
_DIRECT = getattr(os, "O_DIRECT", 0)


def blocks(fd: int) -> Iterator[bytes | memoryview]:
    """The file block by block, read from the disk where that is possible."""
    if os.fstat(fd).st_size >= LARGE:
        yield from _ahead(fd)
        return
    _forget(fd)
    while chunk := os.read(fd, CHUNK):
        yield chunk


def _ahead(fd: int) -> Iterator[memoryview]:
    """Each block is read while the one before it is used."""
    import mmap
    from concurrent.futures import ThreadPoolExecutor

    here, other = (mmap.mmap(-1, BLOCK) for _ in range(2))  # a disk fills only whole pages
    at = 0
    _past_memory(fd, on=True)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(_read, fd, here, at)
        while count := coming.result():
            at += count
            coming = reader.submit(_read, fd, other, at)
            yield memoryview(here)[:count]
            here, other = other, here


def _read(fd: int, into: mmap.mmap, at: int) -> int:
    try:
        return os.preadv(fd, [into], at)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    _past_memory(fd, on=False)  # a disk that cannot, or not from here
    return os.preadv(fd, [into], at)


def _past_memory(fd: int, *, on: bool) -> None:
    """Have reads come from the disk itself, or through memory; then at least not out of it."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL) & ~_DIRECT
    try:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | (_DIRECT if on else 0))
    except OSError:
        on = False
    if not on or not _DIRECT:
        _forget(fd)


def _forget(fd: int) -> None:
    """Have the kernel drop what it has of the file in memory."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
