"""A large database is saved by a process of its own: what goes wrong there ends the backup."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.backup.vault import blocks, save
from hermes_doctor.backup.vault.manifest import BackupEntry
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk
from tests.helpers import support
from tests.helpers.database_writer import back_up

ODD = "an  odd\tname.db"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose databases count as large; one has a name with spaces that must be kept."""
    monkeypatch.setattr(blocks, "MIN_SIZE", 4096)
    home = support.healthy(tmp_path / "home")
    support.put(home / ODD, b"\0" * 8192)
    return home


def test_all_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries, hashes and progress are the same as without such a process."""
    told: list[int] = []
    beside = back_up(home, progress=told.append)
    monkeypatch.setattr(blocks, "MIN_SIZE", 1 << 40)
    here = back_up(home)

    def facts(entry: BackupEntry) -> BackupEntry:
        return entry._replace(read_at=0, seen=())

    assert beside.entry(ODD) is not None
    assert list(map(facts, beside.entries)) == list(map(facts, here.entries))
    assert sum(told) == beside.size
    assert Vault(Home(home)).verify(beside) == []


def refuses(monkeypatch: pytest.MonkeyPatch, how: Callable[[], None]) -> None:
    """What the other process does instead of copying; this one goes on as ever."""
    here, real = os.getpid(), disk.copy_read_back

    def copy(
        source: Path, target: int, progress: Callable[[int], None] | None = None
    ) -> tuple[str, int, bool]:
        if os.getpid() != here:
            how()
        return real(source, target, progress)

    monkeypatch.setattr(disk, "copy_read_back", copy)


def test_a_full_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is called one, and nothing is left."""

    def full() -> None:
        raise OSError(errno.ENOSPC, "full")

    refuses(monkeypatch, full)
    with pytest.raises(Trouble, match="no space left on device"):
        back_up(home)
    assert not [one for one in os.listdir(Home(home).vault) if one != "runs"]


def test_one_that_is_killed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves, a map of a bad disk among the reasons, is saved here instead."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGBUS)

    refuses(monkeypatch, die)
    made = back_up(home)

    assert (made.folder / "files" / ODD).read_bytes() == (home / ODD).read_bytes()
    assert {"state.db", "kanban.db"} <= {entry.path for entry in made.entries}
    assert Vault(Home(home)).verify(made) == []


def test_one_that_is_killed_in_the_middle(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a copy of it is not in the way."""
    here, real = os.getpid(), disk.copy_read_back

    def copy(source: str, target: int, progress: object = None) -> tuple[str, int, bool]:
        found = real(source, target)
        if os.getpid() != here:
            os.truncate(target, 4096)
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    monkeypatch.setattr(disk, "copy_read_back", copy)
    made = back_up(home)

    assert (made.folder / "files" / ODD).read_bytes() == (home / ODD).read_bytes()
    assert Vault(Home(home)).verify(made) == []


def test_a_reader_that_is_killed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not read back is no backup, and nothing is left of it."""
    for number in range(save.MANY + 10):
        support.put(home / "sessions" / f"{number}.jsonl", f"{number}\n")
    here, real = os.getpid(), disk.digest

    def digest(path: str, *more: object, **named: object) -> str:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(path, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(disk, "digest", digest)
    with pytest.raises(Trouble, match="Could not verify the backup"):
        back_up(home)
    assert not [one for one in os.listdir(Home(home).vault) if one != "runs"]


def test_many_files(home: Path) -> None:
    """Several processes save them, and every one is there, in its order and as it was."""
    for number in range(5 * save.MANY):
        support.put(home / "skills" / f"{number % 7}" / f"{number}.md", f"{number}\n" * number)
    told: list[int] = []
    made = back_up(home, progress=told.append)

    names = [entry.path for entry in made.entries]
    wanted = [str(path.relative_to(home)) for path in (home / "skills").rglob("*.md")]
    assert set(wanted) <= set(names)
    assert len(names) == len(set(names))
    assert sum(told) == made.size
    assert Vault(Home(home)).verify(made) == []
    for name in wanted:
        assert (made.folder / "files" / name).read_bytes() == (home / name).read_bytes()
