"""Files are replaced at once, by way of names that nobody else uses."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from hermes_doctor.core.system import disk


def test_no_file_of_anybody_is_lost(tmp_path: Path) -> None:
    """Files with the usual endings are somebody's, and so is one that looks almost like ours."""
    names = ["file.new", ".file.new", "file.tmp", "file~", ".file.hermes-doctor-mine.new"]
    for name in names:
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (0, 0))

    for content in (b"first", b"second"):
        disk.save(tmp_path / "file", content)

    assert sorted(os.listdir(tmp_path)) == sorted(["file", *names])
    assert (tmp_path / "file").read_bytes() == b"second"
    assert all((tmp_path / name).read_text() == name for name in names)


def test_what_a_killed_command_left_goes_later(tmp_path: Path) -> None:
    """One that is new may be another command's that writes it right now."""
    old, new = (disk.temporary(tmp_path / "file") for _ in range(2))
    other = disk.temporary(tmp_path / "another file")
    for path in (old, new, other):
        path.write_text("half")
    for path in (old, other):
        os.utime(path, (time.time() - 2 * disk.LONGEST_SAVE,) * 2)

    disk.save(tmp_path / "file", b"whole")

    assert {path.name for path in tmp_path.iterdir()} == {"file", new.name, other.name}
    disk.remove_temporary(tmp_path / "file")
    assert {path.name for path in tmp_path.iterdir()} == {"file", other.name}


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_its_mode_is_there_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """Nobody sees the file with another mode."""
    seen = []
    rename = disk.rename

    def look(old: Path, new: Path) -> None:
        seen.append(stat.S_IMODE(old.stat().st_mode))
        rename(old, new)

    monkeypatch.setattr(disk, "rename", look)
    disk.save(tmp_path / "file", b"content", mode)

    assert seen == [mode]


def test_a_very_long_name(tmp_path: Path) -> None:
    """The name beside it is shorter."""
    path = tmp_path / ("x" * 255)

    disk.save(path, b"content")

    assert os.listdir(tmp_path) == [path.name]
