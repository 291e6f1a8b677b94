"""Two ways to sum up a file.

The plain one is the SHA-256 of all its bytes. The other is that of the SHA-256 of its pieces:
where little of a large file is different from a copy whose pieces are known, only those that
are have to be hashed. Which of the two a text is can be seen, so whoever compares sums up alike.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import mmap

    Data = bytes | bytearray | memoryview | mmap.mmap

PIECE = 256 * 1024
"""Bytes; smaller ones would make a long list, and of larger ones more is hashed than changed."""
PREFIX = "pieces:"
LENGTH = 32
"""Bytes of a SHA-256."""


class Digest(Protocol):
    """What takes bytes and sums them up."""

    def update(self, data: Data, /) -> None:
        """The next bytes."""

    def hexdigest(self) -> str:
        """The sum, as text."""


def like(known: str | None) -> Digest:
    """What sums up as somebody has who came to this."""
    if known is not None and known.startswith(PREFIX):
        return Pieces()
    return sha256()


def sha256(data: Data = b"") -> Digest:
    """A plain one."""
    import hashlib  # looking needs none, and it is slow to load

    return hashlib.sha256(data)


def of(data: Data) -> bytes:
    """The SHA-256 of one piece."""
    import hashlib

    return hashlib.sha256(data).digest()


def joined(each: Iterable[bytes]) -> str:
    """The sum of a file whose pieces have these."""
    return PREFIX + sha256(b"".join(each)).hexdigest()


class Pieces:
    """Sums up by pieces, whatever comes at a time."""

    def __init__(self) -> None:
        self.each: list[bytes] = []
        self._left = bytearray()

    def update(self, data: Data, /) -> None:
        """The next bytes."""
        with memoryview(data) as view:
            start = 0
            if self._left:
                start = PIECE - len(self._left)
                self._left += view[:start]
                if len(self._left) < PIECE:
                    return
                self.each.append(of(self._left))
                self._left = bytearray()
            while start + PIECE <= len(view):
                with view[start : start + PIECE] as part:
                    self.each.append(of(part))
                start += PIECE
            self._left += view[start:]

    def all(self) -> list[bytes]:
        """Those of all pieces, the last of which may be less than one."""
        return [*self.each, *([of(self._left)] if self._left else [])]

    def hexdigest(self) -> str:
        """The sum, as text that tells how it was made."""
        return joined(self.all())


def of_file(fd: int) -> list[bytes]:
    """Those of the pieces of an open file."""
    found = Pieces()
    at = 0
    while chunk := os.pread(fd, PIECE, at):
        found.update(chunk)
        at += len(chunk)
    return found.all()


def written(each: Sequence[bytes | None]) -> str:
    """The sums of pieces as one text; zeros for what is not known."""
    return b"".join(one or bytes(LENGTH) for one in each).hex()


def parsed(text: str, size: int) -> list[bytes] | None:
    """Those that a text tells of, if it can be of a file of that size."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    if len(data) != LENGTH * -(-size // PIECE):
        return None
    return [data[at : at + LENGTH] for at in range(0, len(data), LENGTH)]
