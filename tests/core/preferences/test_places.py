"""Where the operator's own files are, and which of them are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.core.preferences import places
from tests.helpers import support


def test_the_folder_of_this_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CONFIG_HOME counts if it is a whole path, as its specification says."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", given)
        assert places.own_folder() == tmp_path / ".config" / "hermes-doctor"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/srv/config")
    assert places.own_folder() == Path("/srv/config/hermes-doctor")
    assert places.folders() == (Path("/etc/hermes-doctor"), Path("/srv/config/hermes-doctor"))


def test_root_writes_for_all_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless root chose a folder; other users have their own."""
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert places.writing_folder() == places.SYSTEM
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert places.writing_folder() == Path("/home/alice/.config/hermes-doctor")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/srv/config")
    assert places.writing_folder() == Path("/srv/config/hermes-doctor")


def test_a_file_that_others_can_write_is_refused() -> None:
    """Nor one in a folder of theirs; a file that is missing is None."""
    with support.reachable_folder() as folder:
        file = folder / "config.toml"
        assert places.read_trusted(file) is None
        file.write_text("x = 1")
        assert places.read_trusted(file) == b"x = 1"
        file.chmod(0o666)
        with pytest.raises(Trouble, match=r"Refused to read .*other users may write to"):
            places.read_trusted(file)
        file.chmod(0o644)
        folder.chmod(0o777)
        with pytest.raises(Trouble, match="Refused to read"):
            places.read_trusted(file)
        folder.chmod(0o755)


def test_what_is_not_a_file(tmp_path: Path) -> None:
    """A folder or a FIFO is one line, and nothing waits for it."""
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(Trouble, match="Could not read"):
            places.read_trusted(tmp_path / name)
