"""Holes of files stay holes: in a backup, in the next one, and when the file is restored."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import blocks, restore_files, unchanged
from hermes_doctor.backup.vault.free_space import check_free_space
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk, sparse_files
from tests.helpers import budget, support
from tests.helpers.database_writer import back_up

M = 1024 * 1024
G = 1024 * M


def sparse(path: Path, size: int, *places: int) -> Path:
    """A file of holes, with a few bytes at some places."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for place in places:
            file.seek(place)
            file.write(b"some bytes")
        file.truncate(size)
    path.chmod(0o600)
    return path


def used(folder: Path) -> int:
    """Bytes that a tree takes on the disk, each file counted once."""
    files = {f.lstat().st_ino: f.lstat().st_blocks for f in folder.rglob("*") if f.is_file()}
    return sum(files.values()) * 512


def test_a_home_with_a_large_hole(home: Path) -> None:
    """It takes about as much in the vault as in the home, and holes are not read."""
    size = budget.tries(256 * M, 2 * G)  # the digest of a hole takes a second for each 128 MB
    file = sparse(home / "sessions" / "image.raw", size, 0, 70 * M, size - 100)

    made = back_up(home)

    assert used(made.folder) < 5 * M
    entry = made.entry("sessions/image.raw")
    assert entry is not None and entry.size == size
    copy = made.copy_of(entry)
    assert copy.stat().st_size == size
    for place in (0, 70 * M, size - 100):
        with copy.open("rb") as one, file.open("rb") as other:
            one.seek(place)
            other.seek(place)
            assert one.read(100) == other.read(100)


def test_restored_with_its_holes(home: Path) -> None:
    """By `restore` and by `undo`, byte for byte."""
    file = sparse(home / "sessions" / "image.raw", 64 * M, 5 * M, 40 * M + 123)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    made = back_up(home)
    entry = made.entry("sessions/image.raw")
    assert entry is not None and entry.sha256 == digest
    sparse(file, 50 * M, 20 * M)
    other = file.read_bytes()

    done = support.doctor("backup", "restore", made.id, "sessions", "--yes", "--home", home)

    assert done.code == 0, done.err
    assert hashlib.sha256(file.read_bytes()).hexdigest() == digest
    assert file.stat().st_blocks * 512 < M
    undone = support.doctor("undo", "--yes", "--home", home)
    assert undone.code == 0, undone.err
    assert file.read_bytes() == other
    assert file.stat().st_blocks * 512 < M


def test_in_blocks(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file of which little changed is kept as blocks, and comes back with its holes."""
    monkeypatch.setattr(unchanged, "SETTLED", 0)
    file = sparse(home / "sessions" / "image.raw", 64 * M, 5 * M)
    back_up(home)
    with file.open("r+b") as target:
        target.seek(30 * M)
        target.write(b"changed")

    made = back_up(home)

    entry = made.entry("sessions/image.raw")
    assert entry is not None and entry.blocks
    restore_files.rebuild(made, entry, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == file.read_bytes()
    assert (tmp_path / "back").stat().st_blocks * 512 < 2 * M
    assert Vault(Home(home)).verify(made) == []


def test_a_stretch_at_a_time(tmp_path: Path) -> None:
    """As the copy of a database in use is made: each stretch as long as in the source."""
    file = sparse(tmp_path / "file", 40 * M + 100, 3 * M, 25 * M)
    with file.open("rb") as source, disk.new_file(tmp_path / "copy") as target:
        for start in range(0, 40 * M + 100, 16 * M):
            end = min(start + 16 * M, 40 * M + 100)
            disk.copy_range(source.fileno(), target, start, end - start)
            assert os.fstat(target).st_size == end

    assert (tmp_path / "copy").read_bytes() == file.read_bytes()
    assert (tmp_path / "copy").stat().st_blocks * 512 < M


def test_room_is_what_is_allocated(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose apparent size is larger than what is free can be backed up."""
    file = sparse(home / "sessions" / "image.raw", 300 * M, 0)
    free(monkeypatch, 200 * M)

    made = back_up(home)

    entry = made.entry("sessions/image.raw")
    assert entry is not None and entry.size == file.stat().st_size
    free(monkeypatch, 1 * M)
    (home / "config.yaml").write_text("model: x\n")
    with pytest.raises(Trouble, match=r"free, but .* are needed"):
        back_up(home)


def free(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Let every disk have that many bytes free for an ordinary user, and more for root."""
    values = list(os.statvfs("/"))
    values[1:5] = [4096, 100 * G // 4096, 50 * G // 4096, count // 4096]
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(values))


def test_room_reserved_for_root_is_not_ours(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that only root may use do not count as free, also not for root."""
    free(monkeypatch, 0)
    assert os.statvfs(home).f_bfree > 0

    with pytest.raises(Trouble, match="0 bytes free"):
        check_free_space(home, 1)


@pytest.mark.parametrize("places", [(), (0,), (5 * M,), (0, 5 * M, 9 * M)])
@pytest.mark.parametrize("size", [10 * M, 10 * M + 77])
def test_digests_of_sparse_files(tmp_path: Path, size: int, places: tuple[int, ...]) -> None:
    """The digest is that of all bytes, however it is made."""
    file = sparse(tmp_path / "file", size, *places)
    wanted = hashlib.sha256(file.read_bytes()).hexdigest()

    assert disk.digest(file) == wanted
    for name in ("read back", "plain"):
        made = tmp_path / name
        with disk.new_file(made) as fd:
            if name == "plain":
                assert disk.copy(file, fd) == (wanted, size)
            else:
                assert disk.copy_read_back(file, fd)[:2] == (wanted, size)
        assert made.read_bytes() == file.read_bytes()
        assert sparse_files.allocated_bytes(made.stat()) <= sparse_files.allocated_bytes(
            file.stat()
        )


def test_blocks_of_a_sparse_base(tmp_path: Path) -> None:
    """What two parts stand for ends where it should when it ends with zeros."""
    (tmp_path / "parts").mkdir()
    base = sparse(tmp_path / "parts" / "base", 20 * M, 3 * M)
    now = sparse(tmp_path / "now", 20 * M + 5, 3 * M, 7 * M)
    with (
        blocks.open_as_owner(now) as fd,
        blocks.open_as_owner(base) as earlier,
        disk.new_file(tmp_path / "parts" / "changed") as target,
    ):
        made = blocks.write(blocks.chunks(fd), earlier, target, 20 * M)
    assert made is not None
    with disk.new_file(tmp_path / "back") as fd:
        assert blocks.copy(tmp_path / "parts", fd, made.sha256) == made.sha256
    assert (tmp_path / "back").read_bytes() == now.read_bytes()
