"""The process that reads a database with SQLite's locks: what it does while others write."""

from __future__ import annotations

import _thread
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import condition, inspector
from hermes_doctor.sqlite.examine import examine
from hermes_doctor.sqlite.reader import InMemory, InProcess

COUNT = "SELECT count(*) FROM t"
SECOND_COPY = 48
"""Where the second copy of its header begins in the index of a log; each has 48 bytes."""


@dataclass(frozen=True)
class HalfWritten:
    """A database whose writer has changed only one copy of the header of its index."""

    path: Path
    index: int
    header: bytes

    def complete(self) -> None:
        """Let the writer change the other copy too."""
        os.pwrite(self.index, self.header, SECOND_COPY)


@pytest.fixture
def half_written(tmp_path: Path) -> Iterator[HalfWritten]:
    """A database in use, at the moment at which its writer notes a commit."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE t (n)")
        db.execute("INSERT INTO t VALUES (1)")
        index = os.open(f"{path}-shm", os.O_RDWR)
        made = HalfWritten(path, index, os.pread(index, SECOND_COPY, SECOND_COPY))
        os.pwrite(index, bytes(SECOND_COPY), SECOND_COPY)
        try:
            yield made
        finally:
            made.complete()
            os.close(index)


def test_a_writer_is_just_noting_a_commit(half_written: HalfWritten) -> None:
    """SQLite takes that for a crash if the writer is ready a moment later: we ask again."""
    writer = threading.Timer(0.02, half_written.complete)
    with closing(InProcess(half_written.path, inspector.IN_USE)) as reader:
        writer.start()
        answer = reader.ask(COUNT, 5.0)
        writer.join()

    assert (answer.error, answer.rows) == (None, [[1]])


def test_a_writer_was_killed_while_it_noted_a_commit(half_written: HalfWritten) -> None:
    """Only a new writer can complete the index, so the error is reported."""
    with closing(InProcess(half_written.path, inspector.IN_USE)) as reader:
        answer = reader.ask(COUNT, 5.0)

    assert (answer.error, answer.damaged, answer.rows) == (inspector.CHANGING, False, [])


def test_what_sqlite_cannot_read_is_not_sound(
    half_written: HalfWritten, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The examination reports that it got no answer, and does not call the database sound."""
    monkeypatch.setattr(condition, "SMALL_BYTES_DEEP", 0)
    found = examine(half_written.path, holders=lambda: [os.getpid()], deep=True)

    assert found.doubt == "SQLite cannot read it (SQLITE_READONLY_RECOVERY)"
    assert found.reader is None
    half_written.complete()
    assert examine(half_written.path, holders=lambda: [os.getpid()], deep=True).doubt is None


def test_no_thread_limits_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is asked, and the database is not taken for a damaged one."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
        db.execute("CREATE TABLE t (n)")
    reader = InMemory((tmp_path / "a.db").read_bytes())
    monkeypatch.setattr(_thread, "start_new_thread", refuse)

    with pytest.raises(CouldNotLook, match="could not start a thread"):
        reader.ask(COUNT, 5.0)

    assert reader.ask(COUNT).rows == [[0]]
    reader.close()
