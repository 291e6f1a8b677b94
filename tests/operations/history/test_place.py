"""A home is recognized after it was moved, and another folder in its place is not it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.operations.history import place
from hermes_doctor.operations.history.place import find_row, identity_of


def row(path: Path, identity: str, boot: str = "one", seen: str = "1") -> dict[str, str]:
    """One row of the table of homes."""
    return {"path": str(path), "identity": identity, "boot": boot, "last_seen": seen}


def test_a_renamed_folder_keeps_its_identity(tmp_path: Path) -> None:
    """Also a profile with a new name."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    before = identity_of(old)
    old.rename(new)

    assert identity_of(new) == before != ""
    assert find_row([row(old, before)], str(new), before, "two") == row(old, before)


def test_a_new_folder_is_another_one(tmp_path: Path) -> None:
    """Even if the file system gives it the inode of the deleted one."""
    path = tmp_path / "home"
    path.mkdir()
    before = identity_of(path)
    path.rmdir()
    path.mkdir()
    after = identity_of(path)

    assert before != after
    assert find_row([row(path, before)], str(path), after, "one") is None


def test_a_device_may_get_another_number(tmp_path: Path) -> None:
    """Without a time of creation, the same path and inode after a reboot are the same home."""
    known = [row(tmp_path, "d42:7")]

    assert find_row(known, str(tmp_path), "d42:8", "two") == known[0]
    assert find_row(known, str(tmp_path), "d42:8", "one") is None
    assert find_row(known, str(tmp_path), "d43:8", "two") is None
    assert find_row(known, str(tmp_path), "b42:1234", "two") == known[0], "the kernel is newer now"


def test_the_latest_of_several(tmp_path: Path) -> None:
    """If a path had several homes, the last one counts."""
    first, second = row(tmp_path, "b1:1", seen="1"), row(tmp_path, "b2:2", seen="2")

    assert find_row([first, second], str(tmp_path), "b1:1", "one") == first
    assert find_row([first, second], str(tmp_path), "b3:3", "one") is None


def test_without_statx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not know the time of creation still has an identity."""
    monkeypatch.setattr(place, "_born", lambda *_: "")
    st = tmp_path.stat()

    assert identity_of(tmp_path) == f"d{st.st_ino}:{st.st_dev}"
    assert identity_of(tmp_path / "missing") == "" and place.identity_of_text("a\0b") == ""
    assert place.boot_id()
