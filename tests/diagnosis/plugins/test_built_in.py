"""Computed files of a checkout: made when they are needed, kept where nobody else may write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.plugins import built_in

STRANGER = 4711
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to other users")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one check."""
    for name in ("hermes_doctor", "checks", "fixes"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "checks" / "one.py").write_text("ONE = 1\n")
    monkeypatch.setattr(built_in, "_package", lambda: tmp_path / "hermes_doctor")
    monkeypatch.setattr(built_in, "_computed", {})
    return tmp_path


class Computer:
    """Computes a file and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def ask(self) -> bytes | None:
        """Ask for the file as a new process does."""
        built_in._state_of_sources.cache_clear()
        built_in._computed.clear()
        return built_in.computed("a.json", self._compute)

    def _compute(self) -> dict[str, str]:
        self.calls += 1
        return {"a.json": f"version {self.calls}", "b.json": "beside"}


@pytest.fixture
def computer(checkout: Path) -> Computer:
    """One whose file has been computed once."""
    computer = Computer()
    assert computer.ask() == b"version 1"
    return computer


def kept(checkout: Path) -> Path:
    return checkout / built_in.IN_CHECKOUT


def test_it_is_kept(checkout: Path, computer: Computer) -> None:
    """The next process computes nothing; all may read the file, only its owner may write."""
    assert computer.ask() == b"version 1"
    assert computer.calls == 1
    assert kept(checkout).stat().st_mode & 0o777 == 0o755
    assert {path.name for path in kept(checkout).iterdir()} == {"a.json", "b.json"}
    assert {path.stat().st_mode & 0o777 for path in kept(checkout).iterdir()} == {0o644}


def change(path: Path) -> None:
    path.write_text("TWO = 2\n")
    os.utime(path, ns=(0, 0))  # however old the new file is


@pytest.mark.parametrize("name", ["checks/one.py", "checks/two.py", "fixes/signatures/new.yaml"])
def test_a_changed_source(checkout: Path, computer: Computer, name: str) -> None:
    """An edited or a new file: computed again, and once."""
    (checkout / name).parent.mkdir(exist_ok=True)
    change(checkout / name)
    assert computer.ask() == computer.ask() == b"version 2"


def test_a_removed_source(checkout: Path, computer: Computer) -> None:
    """The check is gone at once."""
    (checkout / "checks" / "one.py").unlink()
    assert computer.ask() == b"version 2"


def test_a_forgotten_file(computer: Computer) -> None:
    """It is computed at the next start."""
    built_in.forget("a.json")
    assert computer.ask() == computer.ask() == b"version 2"


def test_a_damaged_file(checkout: Path, computer: Computer) -> None:
    """As if there were none."""
    (kept(checkout) / "a.json").write_bytes(b"")
    assert computer.ask() == computer.ask() == b"version 2"


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_folder_that_others_may_write(checkout: Path, computer: Computer, mode: int) -> None:
    """Nothing in it counts, and nothing is written there."""
    kept(checkout).chmod(mode)
    assert [computer.ask(), computer.ask()] == [b"version 2", b"version 3"]


def test_a_file_that_others_may_write(checkout: Path, computer: Computer) -> None:
    """It is replaced."""
    (kept(checkout) / "a.json").chmod(0o666)
    assert computer.ask() == computer.ask() == b"version 2"


@as_root
@pytest.mark.parametrize("name", ["", "a.json"])
def test_what_belongs_to_another_user(checkout: Path, computer: Computer, name: str) -> None:
    """Root does not trust what somebody else has put there, even if he owns the folder."""
    os.chown(kept(checkout) / name, STRANGER, STRANGER)
    assert computer.ask() == b"version 2"


@as_root
def test_the_checkout_of_another_user(checkout: Path) -> None:
    """Root leaves nothing in it."""
    os.chown(checkout, STRANGER, STRANGER)
    computer = Computer()
    assert [computer.ask(), computer.ask()] == [b"version 1", b"version 2"]
    assert not kept(checkout).exists()


def test_a_symlink(checkout: Path, computer: Computer, tmp_path: Path) -> None:
    """Neither a folder nor a file is followed to another place."""
    moved = tmp_path / "moved"
    kept(checkout).rename(moved)
    kept(checkout).symlink_to(moved)
    assert computer.ask() == b"version 2"
    assert (moved / "a.json").read_bytes().endswith(b"version 1")


def test_nothing_can_be_kept(checkout: Path) -> None:
    """A file is in the place of the folder, as on a read-only disk: it works each time."""
    kept(checkout).write_text("")
    computer = Computer()
    assert [computer.ask(), computer.ask()] == [b"version 1", b"version 2"]


def test_mistakes_are_not_kept(checkout: Path) -> None:
    """The sources are read until they are right."""
    assert built_in.computed("a.json", lambda: None) is None
    assert not kept(checkout).exists()


def test_an_installation(checkout: Path) -> None:
    """Its files came with it, and nothing is ever computed."""
    package = checkout / "hermes_doctor"
    (package / "checks").mkdir()
    computer = Computer()
    assert computer.ask() is None
    (package / built_in.IN_WHEEL).mkdir()
    (package / built_in.IN_WHEEL / "a.json").write_text("shipped")
    assert computer.ask() == b"shipped"
    assert computer.calls == 0
