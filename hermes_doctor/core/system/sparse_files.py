"""Copy and hash sparse files without filling their holes.

A hole is a range of zeros that takes no space on the disk. A copy that writes the zeros out can
be a thousand times larger than the file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

from hermes_doctor.core.lazy import NamedTuple

CHUNK = 1024 * 1024
ZEROS = bytes(CHUNK)
BLOCK = 512
"""Bytes that `st_blocks` counts in."""


class FileRange(NamedTuple):
    """A range of a file that is either data or a hole."""

    start: int
    end: int
    is_hole: bool


def allocated_bytes(st: os.stat_result) -> int:
    """Return how many bytes a file takes on the disk, at most its length."""
    return min(st.st_size, st.st_blocks * BLOCK)


def is_sparse(st: os.stat_result) -> bool:
    """Whether a file takes less space on the disk than its length."""
    return st.st_blocks * BLOCK < st.st_size


def spans(fd: int, start: int, end: int) -> Iterator[FileRange]:
    """Yield the ranges of a file in order; one range of data where the disk reports no holes."""
    at = start
    while at < end:
        data = _next(fd, at, end, os.SEEK_DATA)
        if data > at:
            yield FileRange(at, data, is_hole=True)
        if data < end:
            at = max(_next(fd, data, end, os.SEEK_HOLE), data + 1)
            yield FileRange(data, at, is_hole=False)
        else:
            at = end


def _next(fd: int, at: int, end: int, kind: int) -> int:
    try:
        return min(os.lseek(fd, at, kind), end)
    except OSError as error:
        if error.errno == errno.ENXIO:  # there is no more data
            return end
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP):
            return at if kind == os.SEEK_DATA else end
        raise


def chunks(fd: int, start: int, end: int) -> Iterator[tuple[int, bytes | memoryview, bool]]:
    """Yield a range of a file in chunks: the offset, the bytes, and whether it is a hole.

    Holes are not read. If the file has become shorter, fewer chunks come.
    """
    for span in spans(fd, start, end):
        at = span.start
        while at < span.end:
            count = min(CHUNK, span.end - at)
            piece = memoryview(ZEROS)[:count] if span.is_hole else os.pread(fd, count, at)
            if not piece:
                return
            yield at, piece, span.is_hole
            at += len(piece)


def copy(
    source: int,
    target: int,
    write_at: Callable[[int, bytes, int], None],
    on_read: Callable[[bytes | memoryview], None],
) -> int:
    """Copy a file in its current length into an empty one, keeping holes; return the length.

    `write_at` writes bytes at an offset of the target. `on_read` gets all bytes, also of holes.
    """
    total = 0
    for at, piece, is_hole in chunks(source, 0, os.fstat(source).st_size):
        if not is_hole:
            write_at(target, bytes(piece), at)
        on_read(piece)
        total = at + len(piece)
    if os.fstat(target).st_size < total:
        os.ftruncate(target, total)
    return total


def is_empty(data: bytes | memoryview) -> bool:
    """Whether all bytes are zeros."""
    return all(
        data[at : at + CHUNK] == ZEROS[: min(CHUNK, len(data) - at)]
        for at in range(0, len(data), CHUNK)
    )
