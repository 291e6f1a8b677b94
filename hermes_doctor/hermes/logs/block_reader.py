"""Read a log file in blocks of lines from any position, with limited memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system.files import MEGABYTE, open_regular, reason, size as shown

BLOCK = MEGABYTE // 4
LONGEST = MEGABYTE
"""Longer lines are cut; the rest is skipped."""
UNPACKED = 64 * MEGABYTE
"""The maximum number of bytes read from a compressed file."""
_REST = 64 * 1024
_PIECE = 1024

Lines = Iterator[tuple[int, list[bytes]]]
"""Where the first line of each block starts, and the lines."""


class FileIdentity(NamedTuple):
    """A file's device and inode, which survive a rename."""

    dev: int
    ino: int


class OpenLog:
    """An open log file, which stays the same file if it is renamed."""

    def __init__(self, path: Path, name: str) -> None:
        self._fd = open_regular(path)
        self._path = path
        self.name = name
        st = os.fstat(self._fd)
        self.identity = FileIdentity(st.st_dev, st.st_ino)
        self.size = st.st_size
        self.written = st.st_mtime
        self._trouble = ""

    def read(self, start: int, length: int) -> bytes:
        """Read some bytes: fewer if the file ends or was truncated, none after an error."""
        try:
            return os.pread(self._fd, length, start)
        except OSError as error:
            self._trouble = f"could not be read to its end: {reason(error, self._path)}"
            return b""

    def past_hole(self, start: int) -> int:
        """Return where the next data after a hole in a sparse file starts."""
        try:
            return os.lseek(self._fd, start, os.SEEK_DATA)
        except (OSError, AttributeError):
            return start

    def lacks(self) -> str:
        """Return why not all of it was read; empty if it was. Call it after reading to the end."""
        return self._trouble

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class CompressedLog(OpenLog):
    """A rotated file compressed with gzip, which can only be read from the start."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self._on_disk = self.size
        self.size = UNPACKED
        self.damaged = False
        self._again()

    def claims(self) -> int:
        """Return the size of its content according to its last bytes, which `size` bounds."""
        last = super().read(max(0, self._on_disk - 4), 4)
        return max(int.from_bytes(last, "little"), self._on_disk)

    def _again(self) -> None:
        self._unpack = zlib.decompressobj(wbits=31)
        self._begun = False
        self._packed = b""
        self._next = self._start = 0
        self._ready = b""

    def read(self, start: int, length: int) -> bytes:
        """Read some bytes of the decompressed content."""
        if start < self._start:
            self._again()
        while self._start + len(self._ready) < start + length and self._more():
            if self._start + len(self._ready) <= start:
                self._start += len(self._ready)
                self._ready = b""
        begin = start - self._start
        data = self._ready[begin : begin + length]
        self._ready = self._ready[begin:]
        self._start = start
        return data

    def _more(self) -> bool:
        """Decompress some more; a file may consist of several gzip members."""
        if not self._packed:
            self._packed = super().read(self._next, _PIECE)
            self._next += len(self._packed)
        if self.damaged or not (self._packed or self._begun):
            return False
        if not self._begun:
            self._unpack = zlib.decompressobj(wbits=31)
        try:
            got = self._unpack.decompress(self._packed, BLOCK)
        except zlib.error:
            self.damaged = True
            return False
        self._begun = not self._unpack.eof
        self.damaged = self._begun and not (self._packed or got)  # it ends in the middle
        self._packed = self._unpack.unconsumed_tail if self._begun else self._unpack.unused_data
        self._ready += got
        return not self.damaged

    def past_hole(self, start: int) -> int:
        """Return the position, because compressed files have no holes."""
        return start

    def lacks(self) -> str:
        """Return why not all of it was read: an error, damage or the size limit."""
        if self.damaged:
            return "it is damaged; what follows the damage was not read"
        full = self._start + len(self._ready) >= self.size
        return f"only its first {shown(self.size)} were read" if full else super().lacks()


def blocks(file: OpenLog, start: int, size: int = BLOCK) -> Lines:
    """Yield the lines from a line start to what was the end when the file was opened."""
    begin = position = start
    carry = b""
    while position < file.size:
        data = file.read(position, min(size, file.size - position))
        if not data:
            break  # it was truncated while it was read
        position += len(data)
        if data[0] == 0 and len(data) == data.count(0):  # left behind by a power cut
            if carry:
                yield begin, [_clean(carry)]
            carry = b""
            begin = position = max(position, file.past_hole(position))
            continue
        whole, found, carry = (carry + data).rpartition(b"\n")
        if found:
            yield from _lines(begin, whole)
            begin += len(whole) + 1
        if len(carry) > LONGEST:
            yield begin, [_clean(carry[:LONGEST])]
            carry = b""
            begin = position = next_line(file, position, size)
    if carry:
        carry += file.read(position, _REST).partition(b"\n")[0]  # it may be complete by now
        yield begin, [_clean(carry)]


def _lines(begin: int, whole: bytes) -> Lines:
    lines = whole.split(b"\n")
    if 0 not in whole and b"\r" not in whole:
        yield begin, lines
        return
    for line in lines:
        yield begin, [_clean(line)]
        begin += len(line) + 1


def _clean(line: bytes) -> bytes:
    """Remove a trailing CR and leading NUL bytes, which a power cut leaves."""
    return line.lstrip(b"\0").rstrip(b"\r")


def next_line(file: OpenLog, position: int, size: int) -> int:
    """Return where the line after this position starts; the end of the file if there is none."""
    while data := file.read(position, size):
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(data)
        if len(data) == data.count(0):
            position = max(position, file.past_hole(position))
    return position
