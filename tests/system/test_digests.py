"""Summing up a file: plainly, or by its pieces."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from hermes_doctor.system import digests
from hermes_doctor.system.digests import PIECE

SIZES = [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 12345]


def each_of(data: bytes) -> list[bytes]:
    """By hand."""
    starts = range(0, len(data), PIECE)
    return [hashlib.sha256(data[at : at + PIECE]).digest() for at in starts]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("piece", [4096, PIECE - 7, PIECE, 3 * PIECE + 1])
def test_whatever_comes_at_a_time(tmp_path: Path, size: int, piece: int) -> None:
    """The bytes come as they like, and the sum is the same; a file's, too."""
    data = random.Random(size).randbytes(size)
    found = digests.Pieces()
    for at in range(0, size, piece):
        found.update(data[at : at + piece])
    (tmp_path / "file").write_bytes(data)
    fd = os.open(tmp_path / "file", os.O_RDONLY)
    of_file = digests.of_file(fd)
    os.close(fd)

    assert found.all() == of_file == each_of(data)
    assert found.hexdigest() == digests.joined(each_of(data))


def test_like() -> None:
    """Whoever compares sums up as the other did."""
    plain, large = digests.sha256(b"x").hexdigest(), digests.joined(each_of(b"x"))
    for known in (plain, large):
        again = digests.like(known)
        again.update(b"x")
        assert again.hexdigest() == known
    assert plain != large
    assert digests.like(None).hexdigest() == hashlib.sha256().hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_written_and_parsed(size: int) -> None:
    """What is written is read again, but never for a file of another length."""
    each = each_of(bytes(size))
    text = digests.written(each)

    assert digests.parsed(text, size) == each
    assert digests.parsed(text, size + 2 * PIECE) is None
    assert digests.parsed(f"{text}zz", size) is None
