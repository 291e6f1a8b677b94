"""Hermes' own databases are judged when they are saved, also when nobody uses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.manifest import BackupEntry
from tests.helpers import damage, support
from tests.helpers.database_writer import back_up


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A healthy home with a history."""
    home = support.healthy(tmp_path / "home")
    damage.history(home / "state.db")
    return home


def entry(home: Path, name: str = "state.db") -> BackupEntry:
    """What a backup says of a file."""
    found = back_up(home).entry(name)
    assert found is not None
    return found


def test_a_sound_one(home: Path) -> None:
    """It is said to be, once for all backups that share it."""
    first = entry(home)
    second = entry(home)

    assert (first.integrity, first.method) == ("ok", "bytes")
    assert first.examined_at == second.examined_at > 0


@pytest.mark.sampled
@pytest.mark.parametrize("how", [damage.rows_zeroed, damage.root_zeroed, damage.chain_cut])
def test_a_damaged_one(home: Path, how: Callable[[Path], None]) -> None:
    """It is saved as it is, and that it is damaged is said, also the next time."""
    how(home / "state.db")
    for _ in range(2):
        done = support.doctor("backup", "create", "--home", home)

        assert done.code == 1
        assert "state.db is damaged" in " ".join(done.out.split())


def test_no_database_at_all(home: Path) -> None:
    """Neither is a state.db that is none."""
    support.put(home / "state.db", b"<html>Bad gateway</html>" * 500)

    assert entry(home).integrity == "SQLITE_NOTADB"


def test_what_others_call_a_database(home: Path) -> None:
    """A skill may keep what it likes under such a name."""
    support.put(home / "skills/mine/words.db", b"one word a line\n" * 500)

    assert entry(home, "skills/mine/words.db").integrity is None
    assert support.doctor("backup", "create", "--home", home).code == 0


def test_one_with_something_in_its_log(home: Path) -> None:
    """By itself it may look torn and be whole with its log: it is not judged."""
    damage.with_log(home / "state.db")

    assert entry(home, "state.db-wal").size > 0
    assert entry(home).integrity is None


def test_one_of_a_profile(home: Path) -> None:
    """A profile's databases are Hermes' own, too."""
    path = damage.history(support.healthy(home / "profiles/shop") / "state.db")
    damage.rows_zeroed(path)

    assert entry(home, "profiles/shop/state.db").integrity == "damaged"
