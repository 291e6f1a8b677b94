"""A log file in blocks of lines, from anywhere in it: nothing is held, nothing can run away."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.system.files import MEGABYTE, open_regular, reason, size as shown

BLOCK = MEGABYTE // 4
LONGEST = MEGABYTE
"""A line longer than this is cut; the rest of it is passed over."""
UNPACKED = 64 * MEGABYTE
"""What is read of a packed file at most."""
_REST = 64 * 1024
_PIECE = 1024

Lines = Iterator[tuple[int, list[bytes]]]
"""Where the first line of each block begins, and the lines."""


class Place(NamedTuple):
    """Which file it is, whatever its name is by now."""

    dev: int
    ino: int


class Opened:
    """One file as it was when it was opened, under whatever name it lies by now."""

    def __init__(self, path: Path, name: str) -> None:
        self._fd = open_regular(path)
        self._path = path
        self.name = name
        st = os.fstat(self._fd)
        self.place = Place(st.st_dev, st.st_ino)
        self.size = st.st_size
        self.written = st.st_mtime
        self._trouble = ""

    def read(self, start: int, length: int) -> bytes:
        """Some bytes; fewer where the file ends or was cut meanwhile, none where it broke."""
        try:
            return os.pread(self._fd, length, start)
        except OSError as error:
            self._trouble = f"could not be read to its end: {reason(error, self._path)}"
            return b""

    def past_hole(self, start: int) -> int:
        """Where the next bytes lie that were ever written."""
        try:
            return os.lseek(self._fd, start, os.SEEK_DATA)
        except (OSError, AttributeError):
            return start

    def lacks(self) -> str:
        """Why not all of it was read, once it was read to its end; empty when it was."""
        return self._trouble

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)


class Packed(Opened):
    """A file that was rotated and packed with gzip: it can only be read from its beginning."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self._on_disk = self.size
        self.size = UNPACKED
        self.damaged = False
        self._again()

    def claims(self) -> int:
        """How many bytes are in it, as its end says; that may be a lie, so `size` bounds it."""
        last = super().read(max(0, self._on_disk - 4), 4)
        return max(int.from_bytes(last, "little"), self._on_disk)

    def _again(self) -> None:
        self._unpack = zlib.decompressobj(wbits=31)
        self._begun = False
        self._packed = b""
        self._next = self._start = 0
        self._ready = b""

    def read(self, start: int, length: int) -> bytes:
        """Some bytes of what is in it."""
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
        """Unpack some more; several packed pieces may lie behind one another."""
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
        """There are no holes in there."""
        return start

    def lacks(self) -> str:
        """The same; what is packed may be damaged, or be endless."""
        if self.damaged:
            return "it is damaged; what follows the damage was not read"
        full = self._start + len(self._ready) >= self.size
        return f"only its first {shown(self.size)} were read" if full else super().lacks()


def blocks(file: Opened, start: int, size: int = BLOCK) -> Lines:
    """The lines from a place where one begins to what was the end when it was opened."""
    begin = position = start
    carry = b""
    while position < file.size:
        data = file.read(position, min(size, file.size - position))
        if not data:
            break  # it was cut while it was read
        position += len(data)
        if len(data) == data.count(0):  # what a machine leaves that lost its power
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
        carry += file.read(position, _REST).partition(b"\n")[0]  # perhaps it is whole by now
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
    """Without what Windows ends a line with, and the zeros that a lost machine left before it."""
    return line.lstrip(b"\0").rstrip(b"\r")


def next_line(file: Opened, position: int, size: int) -> int:
    """Where the line after this position begins; the end, if none does."""
    while data := file.read(position, size):
        found = data.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(data)
        if len(data) == data.count(0):
            position = max(position, file.past_hole(position))
    return position
