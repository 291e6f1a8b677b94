"""A database that was sound is not read again while it is unchanged; every change is seen."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.sqlite.examine import known_sound
from hermes_doctor.sqlite.examine.condition import Condition
from hermes_doctor.sqlite.examine.run import Examination, examine
from tests.helpers import support


@pytest.fixture(autouse=True)
def remembering(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a watch; a file counts as old enough at once."""
    monkeypatch.setattr(known_sound, "RECENT", 0.0)
    known_sound.remember()
    yield
    known_sound.forget()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The databases that were read in full."""
    found: list[Path] = []
    real = Examination.verdict

    def verdict(self: Examination, *given: object) -> object:
        found.append(self.found.files.path)
        return real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Examination, "verdict", verdict)
    return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = support.history(tmp_path / "state.db")
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE more (text)")
        db.executemany("INSERT INTO more VALUES (?)", [("words " * 200,)] * 200)
    db.close()
    time.sleep(0.02)  # the clock of files is coarse
    return path


def look(path: Path) -> Condition:
    return examine(path, holders=list, deep=False)


def test_an_unchanged_one_is_read_once(database: Path, reads: list[Path]) -> None:
    """The others that are beside it are read on their own."""
    for _ in range(3):
        assert look(database).damage is None
    assert reads == [database]


def test_nothing_is_remembered_by_default(database: Path, reads: list[Path]) -> None:
    """A single check reads everything."""
    known_sound.forget()
    look(database)
    look(database)
    assert len(reads) == 2 and known_sound.news() == {}


@pytest.mark.parametrize("restore", [False, True])
def test_damage_is_seen_at_once(database: Path, reads: list[Path], restore: bool) -> None:
    """Also if the file has the same size, and somebody gave it its old time back."""
    look(database)
    before = database.stat()
    with database.open("r+b") as file:
        file.seek(database.stat().st_size - 40_000)
        file.write(b"\xff" * 30_000)
    if restore:
        os.utime(database, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert database.stat().st_size == before.st_size
    assert look(database).damage is not None
    assert look(database).damage is not None
    assert len(reads) >= 3, "what is damaged is never remembered"


def test_another_file_in_its_place(database: Path, reads: list[Path]) -> None:
    """With the same size and times."""
    look(database)
    before = database.stat()
    other = database.with_name("other.db")
    other.write_bytes(database.read_bytes())
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(database)
    look(database)
    assert len(reads) == 2


def test_a_log_that_appears(database: Path, reads: list[Path]) -> None:
    """A write-ahead log or a journal changes what the database says."""
    look(database)
    database.with_name("state.db-journal").write_bytes(b"")
    look(database)
    assert len(reads) == 2


def test_a_change_of_just_now_is_not_trusted(
    database: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next change may have the same time."""
    monkeypatch.setattr(known_sound, "RECENT", 3600.0)
    look(database)
    look(database)
    assert len(reads) == 2


def test_it_is_read_again_after_some_minutes(
    database: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may damage a file without any change of its times."""
    look(database)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + known_sound.VALID + 1)
    look(database)
    look(database)
    assert len(reads) == 2, "once for both rounds after that"


def test_another_process_goes_on_with_it(database: Path, reads: list[Path]) -> None:
    """A watch passes it from the process of one round to the next."""
    look(database)
    found = known_sound.news()
    assert len(found) == 1
    known_sound.forget()
    known_sound.remember()
    known_sound.adopt(found)
    look(database)
    assert len(reads) == 1
