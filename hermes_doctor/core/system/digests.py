"""Compute the digest of a file in one of two forms: plain, or by chunks.

The plain digest is the SHA-256 of all bytes. The other is the SHA-256 of the SHA-256 digests of
all chunks: if few chunks of a large file differ from a copy whose chunk digests are known, only
those few are hashed again. The text of a digest shows its form, so a file can be hashed in the
same form to compare.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import mmap

    Data = bytes | bytearray | memoryview | mmap.mmap

CHUNK = 256 * 1024
"""Bytes of a chunk; smaller chunks make a long list, larger ones hash too much around a change."""
PREFIX = "pieces:"
LENGTH = 32
"""Bytes of a SHA-256."""


class Digest(Protocol):
    """A hash that is fed with bytes, as in `hashlib`."""

    def update(self, data: Data, /) -> None:
        """Add the next bytes."""

    def hexdigest(self) -> str:
        """Return the digest as text."""


def new_like(known: str | None) -> Digest:
    """Return a new hash of the same form as a known digest; plain if none is known."""
    if known is not None and known.startswith(PREFIX):
        return ChunkedDigest()
    return sha256()


def sha256(data: Data = b"") -> Digest:
    """Return a plain SHA-256 hash."""
    import hashlib  # slow to load, and a check run does not need it

    return hashlib.sha256(data)


def of(data: Data) -> bytes:
    """Return the SHA-256 of one chunk."""
    import hashlib

    return hashlib.sha256(data).digest()


def combine(each: Iterable[bytes]) -> str:
    """Return the digest of a file from the digests of its chunks."""
    return PREFIX + sha256(b"".join(each)).hexdigest()


class ChunkedDigest:
    """A hash by chunks; it may be fed with any number of bytes at a time."""

    def __init__(self) -> None:
        self.each: list[bytes] = []
        self._left = bytearray()

    def update(self, data: Data, /) -> None:
        """Add the next bytes."""
        with memoryview(data) as view:
            start = 0
            if self._left:
                start = CHUNK - len(self._left)
                self._left += view[:start]
                if len(self._left) < CHUNK:
                    return
                self.each.append(of(self._left))
                self._left = bytearray()
            while start + CHUNK <= len(view):
                with view[start : start + CHUNK] as part:
                    self.each.append(of(part))
                start += CHUNK
            self._left += view[start:]

    def all(self) -> list[bytes]:
        """Return the digests of all chunks; the last chunk may be shorter."""
        return [*self.each, *([of(self._left)] if self._left else [])]

    def hexdigest(self) -> str:
        """Return the digest as text, with the prefix that shows its form."""
        return combine(self.all())


def chunks_of_file(fd: int) -> list[bytes]:
    """Return the digests of the chunks of an open file."""
    chunked_digest = ChunkedDigest()
    at = 0
    while chunk := os.pread(fd, CHUNK, at):
        chunked_digest.update(chunk)
        at += len(chunk)
    return chunked_digest.all()


def to_text(each: Sequence[bytes | None]) -> str:
    """Write chunk digests as one text, with zeros for the unknown ones."""
    return b"".join(one or bytes(LENGTH) for one in each).hex()


def from_text(text: str, size: int) -> list[bytes] | None:
    """Parse chunk digests from a text; None if it does not fit a file of that size."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    if len(data) != LENGTH * -(-size // CHUNK):
        return None
    return [data[at : at + LENGTH] for at in range(0, len(data), LENGTH)]
