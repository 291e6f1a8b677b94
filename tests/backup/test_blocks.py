"""A file compared with its base in place gives the same blocks as one that is read."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup import blocks
from hermes_doctor.backup.blocks import CHUNK, MappedBase
from hermes_doctor.system import digests

SIZE = 3 * CHUNK + 5000


def in_place(fd: int, mapped: MappedBase) -> Iterator[bytes | range]:
    """The content of a file, where it differs from the base as bytes, else as where it lies."""
    size = os.fstat(fd).st_size
    for start in range(0, size, CHUNK):
        end = min(start + CHUNK, size)
        same = mapped.holds(fd, start, end)
        yield range(start, end) if same else os.pread(fd, end - start, start)


@pytest.mark.parametrize("seed", range(12))
def test_the_same_blocks(tmp_path: Path, seed: int) -> None:
    """Whatever has changed: bytes anywhere, a shorter file, a longer one, or nothing."""
    chance = random.Random(seed)
    base = chance.randbytes(SIZE)
    now = bytearray(base)
    for _ in range(seed % 4):
        now[chance.randrange(SIZE)] ^= 1 + chance.randrange(255)
    now = now[: SIZE - chance.randrange(2 * CHUNK)] if seed % 3 == 1 else now
    now += chance.randbytes(chance.randrange(CHUNK)) if seed % 3 == 2 else b""
    (tmp_path / "base").write_bytes(base)
    (tmp_path / "now").write_bytes(now)
    each = [hashlib.sha256(now[at : at + CHUNK]).digest() for at in range(0, len(now), CHUNK)]
    targets = [tmp_path / "read", tmp_path / "in place"]
    with (
        blocks.open_as_owner(tmp_path / "base") as then,
        blocks.open_as_owner(tmp_path / "now") as fd,
        targets[0].open("wb", 0) as read,
        targets[1].open("wb", 0) as compared,
    ):
        plain = blocks.write(blocks.chunks(fd), then, read.fileno(), SIZE)
        assert plain is not None
        mapped = MappedBase(then)
        content = in_place(fd, mapped)
        known = digests.from_text(plain.pieces, SIZE) or ()
        made = blocks.write(content, then, compared.fileno(), SIZE, known, mapped)

    assert made == plain
    assert made.sha256 == digests.combine(each)
    assert made.same == (now == base)
    assert targets[0].read_bytes() == targets[1].read_bytes()


def test_no_map_of_nothing(tmp_path: Path) -> None:
    """An empty base cannot be mapped, which is said as an error that callers know."""
    (tmp_path / "base").touch()
    with blocks.open_as_owner(tmp_path / "base") as fd, pytest.raises(ValueError, match="empty"):
        MappedBase(fd)


def test_beyond_its_end(tmp_path: Path) -> None:
    """What is longer than the base is never as in the base."""
    (tmp_path / "base").write_bytes(b"x" * 100)
    (tmp_path / "now").write_bytes(b"x" * 101)
    with (
        blocks.open_as_owner(tmp_path / "base") as base,
        blocks.open_as_owner(tmp_path / "now") as fd,
    ):
        mapped = MappedBase(base)
        assert mapped.holds(fd, 0, 100)
        assert not mapped.holds(fd, 0, 101)
        assert not mapped.holds(fd, 99, 102)
        assert mapped.has(b"x" * 7, 93)
        assert not mapped.has(b"x" * 7, 94)
        assert not mapped.has(b"xxy", 5)
