"""Summing up a file: plainly, or by its pieces."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from hermes_doctor.core.system import digests
from hermes_doctor.core.system.digests import CHUNK

SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 12345]


def each_of(data: bytes) -> list[bytes]:
    """By hand."""
    starts = range(0, len(data), CHUNK)
    return [hashlib.sha256(data[at : at + CHUNK]).digest() for at in starts]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [4096, CHUNK - 7, CHUNK, 3 * CHUNK + 1])
def test_whatever_comes_at_a_time(tmp_path: Path, size: int, piece: int) -> None:
    """The bytes come as they like, and the sum is the same; a file's, too."""
    data = random.Random(size).randbytes(size)
    found = digests.ChunkedDigest()
    for at in range(0, size, piece):
        found.update(data[at : at + piece])
    (tmp_path / "file").write_bytes(data)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    of_file = digests.chunks_of_file(fd)
    os.close(fd)

    assert found.all() == of_file == each_of(data)
    assert found.hexdigest() == digests.combine(each_of(data))


def test_like() -> None:
    """Whoever compares sums up as the other did."""
    plain, large = digests.sha256(b"x").hexdigest(), digests.combine(each_of(b"x"))
    for known in (plain, large):
        again = digests.new_like(known)
        again.update(b"x")
        assert again.hexdigest() == known
    assert plain != large
    assert digests.new_like(None).hexdigest() == hashlib.sha256().hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_written_and_parsed(size: int) -> None:
    """What is written is read again, but never for a file of another length."""
    each = each_of(bytes(size))
    text = digests.to_text(each)

    assert digests.from_text(text, size) == each
    assert digests.from_text(text, size + 2 * CHUNK) is None
    assert digests.from_text(f"{text}zz", size) is None
