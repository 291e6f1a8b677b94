"""The file that a monitor reads is replaced at once, or stays as it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes_doctor.cli import output_file
from hermes_doctor.model import Trouble


def test_the_file_is_replaced_at_once(tmp_path: Path) -> None:
    """Who has the old file open goes on reading it; nothing else is left in the folder."""
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    with path.open() as old:
        output_file.replace(path, "new\n")
        assert old.read() == "old"

    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_a_new_file_can_be_read_by_the_collector(tmp_path: Path) -> None:
    """It has the mode that the operator's umask gives."""
    umask = os.umask(0o022)
    try:
        output_file.replace(tmp_path / "out", "new\n")
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o644


def test_behind_a_link_the_file_is_replaced(tmp_path: Path) -> None:
    """The link stays."""
    (tmp_path / "link").symlink_to(tmp_path / "file")

    output_file.replace(output_file.find(tmp_path / "link"), "new\n")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new\n"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("folder", "is not a file"),
        ("pipe", "is not a file"),
        ("missing/out", "its folder does not exist"),
        ("file/out", "its folder does not exist"),
        ("loop", "its links form a loop"),
        ("loop/out", "its links form a loop"),
        ("null\0character", "Cannot write to"),
    ],
)
def test_where_no_file_can_be(tmp_path: Path, place: str, said: str) -> None:
    """One line says where and why, before anything is done."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(Trouble, match=said):
        output_file.find(tmp_path / place)


def test_a_user_who_does_not_exist() -> None:
    """An unknown user after `~` gives one clear line."""
    with pytest.raises(Trouble, match="Cannot write to"):
        output_file.find(Path("~nobody-has-this-name/out"))


def test_whatever_the_umask_is(tmp_path: Path) -> None:
    """The service that writes metrics has a strict one, and another user reads them."""
    umask = os.umask(0o077)
    try:
        output_file.replace(tmp_path / "out", "new\n", output_file.WORLD_READABLE)
    finally:
        os.umask(umask)

    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to other groups")
def test_the_group_stays(tmp_path: Path) -> None:
    """A collector may read the file through its group."""
    path = tmp_path / "out"
    path.write_text("old")
    os.chown(path, -1, 12345)

    output_file.replace(path, "new\n")

    assert path.stat().st_gid == 12345


def test_a_long_name(tmp_path: Path) -> None:
    """The temporary file has a short name of its own."""
    path = tmp_path / ("x" * 255)

    output_file.replace(path, "new\n")

    assert path.read_text() == "new\n"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays, and the command says that it could not write."""
    (tmp_path / "out").write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Trouble, match="No space left on device"):
        output_file.replace(tmp_path / "out", "new\n")

    assert (tmp_path / "out").read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]
