"""Files copied inside the kernel and read back past the memory: the same bytes everywhere."""

from __future__ import annotations

import errno
import hashlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.system import direct_io, disk
from tests.helpers import requirements

SIZES = [
    0,
    1,
    direct_io.LARGE - 1,
    direct_io.LARGE,
    direct_io.LARGE + 1,
    direct_io.LARGE + 3 * 4096 + 5,
]


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk, and one on a drive that has none behind it."""
    if request.param == "disk":
        yield tmp_path
        return
    place = Path("/dev/shm") / f"hermes-doctor-{os.getpid()}"
    if not place.parent.is_dir():
        requirements.missing("/dev/shm is not mounted")
    place.mkdir()
    try:
        yield place
    finally:
        for path in place.iterdir():
            path.unlink()
        place.rmdir()


def filled(path: Path, size: int) -> str:
    """A file of that size; its hash."""
    data = random.Random(size).randbytes(size)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", SIZES)
def test_digest(folder: Path, size: int) -> None:
    """The hash is that of every byte, whatever the size, and progress tells of them all."""
    told: list[int] = []
    assert filled(folder / "file", size) == disk.digest(folder / "file", told.append)
    assert sum(told) == size


@pytest.mark.sampled
@pytest.mark.parametrize("at", [0, direct_io.BLOCK, 3 * direct_io.BLOCK])
def test_a_disk_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Some refuse to be read past the memory, some only from some place on: then through it."""
    real, refused = os.preadv, list[int]()

    def preadv(fd: int, into: list[object], offset: int) -> int:
        if offset >= at and not refused:
            refused.append(offset)
            raise OSError(errno.EINVAL, "not like this")
        return real(fd, into, offset)  # type: ignore[arg-type]

    expected = filled(tmp_path / "file", direct_io.LARGE + 99)
    monkeypatch.setattr(os, "preadv", preadv)

    assert disk.digest(tmp_path / "file") == expected
    assert refused == [at]


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that fails is an error, never a shorter file."""

    def preadv(*_: object) -> int:
        raise OSError(errno.EIO, "the disk")

    filled(tmp_path / "file", direct_io.LARGE)
    monkeypatch.setattr(os, "preadv", preadv)

    with pytest.raises(OSError, match="the disk"):
        disk.digest(tmp_path / "file")


@pytest.mark.parametrize("size", [0, 1, 5 * 65536, 5 * 65536 + 99, 2**20, 3 * 2**20 + 7])
def test_pieces_of_arriving(folder: Path, size: int) -> None:
    """The hashes of a file that is written meanwhile are those of every byte."""
    data = random.Random(size).randbytes(size)
    with disk.new_file(folder / "file") as fd:

        def arriving() -> Iterator[int]:
            yield 0
            for at in range(0, size, 65536):
                disk.write_at(fd, data[at : at + 65536], at)
                yield min(at + 65536, size)

        each = disk.hash_while_written(folder / "file", arriving())

    assert each == [hashlib.sha256(data[i : i + 2**18]).digest() for i in range(0, size, 2**18)]


@pytest.mark.parametrize("how", ["kernel", "another drive", "none", "it says nothing"])
@pytest.mark.parametrize("size", [0, 5, 3 * disk.CHUNK + 4097])
def test_transfer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, size: int) -> None:
    """By the kernel, or by reading and writing where it cannot."""

    def refuse(*_: object) -> int:
        if how == "another drive":
            raise OSError(errno.EXDEV, "not from there")
        return 0

    if how == "none":
        monkeypatch.delattr(os, "copy_file_range")
    elif how != "kernel":
        monkeypatch.setattr(os, "copy_file_range", refuse)
    expected = filled(tmp_path / "file", size)

    with (tmp_path / "file").open("rb") as file, disk.new_file(tmp_path / "copy") as fd:
        for start in range(0, size, disk.CHUNK):
            disk.copy_range(file.fileno(), fd, start, disk.CHUNK)

    assert hashlib.sha256((tmp_path / "copy").read_bytes()).hexdigest() == expected
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_is_no_shorter_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel fails with is told, and the half copy is gone."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    filled(tmp_path / "file", 5000)
    monkeypatch.setattr(os, "copy_file_range", full)
    with (
        pytest.raises(OSError, match="full"),
        (tmp_path / "file").open("rb") as file,
        disk.new_file(tmp_path / "copy") as fd,
    ):
        disk.copy_range(file.fileno(), fd, 0, 5000)
    assert not (tmp_path / "copy").exists()


COPIED = [0, 1, disk.DIRECT - 1, disk.DIRECT, direct_io.CHUNK, 3 * direct_io.CHUNK + 4096 + 5]


@pytest.mark.parametrize("size", COPIED)
def test_copied_and_read_back(folder: Path, size: int) -> None:
    """Every byte arrives, none behind the last, and the hash is theirs."""
    known, told = filled(folder / "file", size), list[int]()
    with disk.new_file(folder / "copy") as fd:
        found, count, _ = disk.copy_read_back(folder / "file", fd, told.append)
    assert (found, count, sum(told)) == (known, size, size)
    assert (folder / "copy").read_bytes() == (folder / "file").read_bytes()


def test_a_disk_that_takes_it_only_through_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it is written so, and counts as not read back yet."""
    filled(tmp_path / "file", 3 * direct_io.CHUNK + 7)
    real, refused = os.write, list[int]()

    def write(fd: int, data: memoryview) -> int:
        if not refused:
            refused.append(fd)
            raise OSError(errno.EINVAL, "not like this")
        return real(fd, data)

    with disk.new_file(tmp_path / "copy") as fd, monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        _, _, read_back = disk.copy_read_back(tmp_path / "file", fd)
    assert refused and not read_back
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "file").read_bytes()


def test_a_disk_that_holds_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte that comes back different, and the copy does not count as read back."""
    filled(tmp_path / "file", 3 * direct_io.CHUNK)
    real = os.preadv

    def preadv(fd: int, into: list[memoryview], at: int) -> int:
        count = real(fd, into, at)
        if at == direct_io.CHUNK:
            into[0][77] ^= 1
        return count

    monkeypatch.setattr(os, "preadv", preadv)
    with disk.new_file(tmp_path / "copy") as fd:
        assert not disk.copy_read_back(tmp_path / "file", fd)[2]


def test_rooms_are_each_process_own(tmp_path: Path) -> None:
    """What a forked process reads does not come into the rooms of the one it was forked from."""
    filled(tmp_path / "ours", direct_io.CHUNK)
    filled(tmp_path / "theirs", 2 * direct_io.CHUNK)
    rooms = direct_io.Buffers.of_thread()
    with (tmp_path / "ours").open("rb", 0) as file:
        rooms.fill(file.fileno())
    expected = (tmp_path / "ours").read_bytes()
    pid = os.fork()
    if not pid:
        disk.digest(tmp_path / "theirs")
        direct_io.Buffers.of_thread().back[:] = bytes(direct_io.CHUNK)
        os._exit(0)
    os.waitpid(pid, 0)

    assert rooms.piece[:] == expected
