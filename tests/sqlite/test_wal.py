"""Logs that change while they are read."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from hermes_doctor.sqlite import wal
from tests.helpers import damage


@pytest.mark.parametrize("left", [0, 1, wal.LOG_HEAD - 1])
def test_emptied_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int) -> None:
    """A checkpoint that empties the log between two looks at it leaves an empty log, no crash."""
    log = tmp_path / "state.db-wal"
    log.write_bytes(b"\0" * 5000)
    real = os.fstat

    def fstat(fd: int) -> os.stat_result:
        found = real(fd)
        os.truncate(log, left)
        return found

    monkeypatch.setattr(os, "fstat", fstat)
    with log.open("rb", 0) as file:
        assert wal.read(file.fileno()) == wal.EMPTY


_COLUMNS = "session_id, role, content, timestamp"
CHANGES = {
    "in place": [damage.MANY],
    "shorter": ["DELETE FROM messages WHERE id % 2 = 0"],
    "longer": [f"INSERT INTO messages ({_COLUMNS}) SELECT {_COLUMNS} FROM messages"],
    "schema": ["CREATE TABLE more (a)", damage.MANY],
}


def cut(path: Path, case: str) -> Path:
    """One transaction that was cut off."""
    return damage.cut_off_transaction(path, *CHANGES[case])


@pytest.mark.parametrize("case", CHANGES)
def test_as_sqlite_plays_it_back(tmp_path: Path, case: str) -> None:
    """The same bytes as SQLite leaves, for every kind of change."""
    path = cut(damage.history(tmp_path / "a.db"), case)
    fd = os.open(f"{path}-journal", os.O_RDONLY)
    undo = wal.read_journal(fd, damage.PAGE)
    ours = wal.rolled_back(fd, undo, path.read_bytes())
    os.close(fd)
    assert undo.whole
    assert undo.places

    with damage.opened(path) as db:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()

    assert not Path(f"{path}-journal").exists()
    assert path.read_bytes() == ours


@pytest.mark.parametrize("seed", range(12))
def test_damaged_journals(tmp_path: Path, seed: int) -> None:
    """Wherever it is damaged or cut, both stop at the same record."""
    chance = random.Random(seed)
    path = cut(damage.history(tmp_path / "a.db", messages=200), "in place")
    book = bytearray(Path(f"{path}-journal").read_bytes())
    if chance.random() < 0.5:
        at = chance.randrange(512, len(book) - 4)
        book[at : at + 4] = chance.randbytes(4)
    else:
        book = book[: chance.randrange(512, len(book))]
    Path(f"{path}-journal").write_bytes(book)
    fd = os.open(f"{path}-journal", os.O_RDONLY)
    ours = wal.rolled_back(fd, wal.read_journal(fd, damage.PAGE), path.read_bytes())
    os.close(fd)

    with damage.opened(path) as db:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()

    assert path.read_bytes() == ours


@pytest.mark.parametrize("seed", range(30))
def test_hostile_journals(tmp_path: Path, seed: int) -> None:
    """Any bytes are a journal or none, at once."""
    chance = random.Random(seed)
    path = tmp_path / "journal"
    head = wal.JOURNAL_MAGIC if chance.random() < 0.8 else b""
    path.write_bytes(head + chance.randbytes(chance.randrange(20_000)))
    fd = os.open(path, os.O_RDONLY)
    wal.read_journal(fd, damage.PAGE)
    wal.is_hot(fd)
    os.close(fd)
    shutil.rmtree(tmp_path)
