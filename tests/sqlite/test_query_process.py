"""The process that reads a database with SQLite's locks: what it does while others write."""

from __future__ import annotations

import _thread
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.sqlite import query_process
from hermes_doctor.sqlite.examine import condition
from hermes_doctor.sqlite.examine.run import examine
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
    with closing(InProcess(half_written.path, query_process.IN_USE)) as reader:
        writer.start()
        answer = reader.ask(COUNT, 5.0)
        writer.join()

    assert (answer.error, answer.rows) == (None, [[1]])


def test_a_writer_was_killed_while_it_noted_a_commit(half_written: HalfWritten) -> None:
    """Only a new writer can complete the index, so the error is reported."""
    with closing(InProcess(half_written.path, query_process.IN_USE)) as reader:
        answer = reader.ask(COUNT, 5.0)

    assert (answer.error, answer.damaged, answer.rows) == (query_process.CHANGING, False, [])


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


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database in WAL mode with 500 rows, closed in order."""
    path = tmp_path / "a ?#%.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, said TEXT)")
        db.executemany("INSERT INTO t (said) VALUES (?)", [("x" * 500,)] * 500)
        db.commit()
    return path


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Another user of the database, whose newest row is only in the write-ahead log."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("INSERT INTO t (said) VALUES ('newest')")
        db.commit()
        yield db


def beside(path: Path) -> dict[str, tuple[object, ...]]:
    """Everything that can be seen of the files, with the times of their last access."""
    found: dict[str, tuple[object, ...]] = {}
    for one in sorted(path.parent.iterdir()):
        at = one.stat()
        times = at.st_atime_ns, at.st_mtime_ns, at.st_ctime_ns
        found[one.name] = (at.st_ino, at.st_size, at.st_uid, at.st_mode, *times)
    return found


def age(path: Path) -> None:
    """Make every file look unread for a day, so that Linux would note the next access."""
    for one in path.parent.iterdir():
        now = one.stat()
        os.utime(one, ns=(now.st_mtime_ns - 86_400 * 10**9, now.st_mtime_ns))


def count(reader: InProcess) -> int:
    answer = reader.ask("SELECT count(*) FROM t", 5.0)
    assert answer.error is None, answer
    return int(answer.rows[0][0])


def test_rows_of_the_log_are_read(database: Path) -> None:
    """What is only in the write-ahead log counts."""
    with opened(database), closing(InProcess(database, query_process.IN_USE)) as reader:
        assert count(reader) == 501


def test_the_log_can_be_ignored(database: Path) -> None:
    """Without its log, the file is read as it is."""
    with opened(database), closing(InProcess(database, query_process.NOT_IN_USE)) as reader:
        assert count(reader) == 500


def test_nothing_is_changed(database: Path) -> None:
    """A whole integrity check leaves every file as it was, with its times."""
    with opened(database):
        age(database)
        before = beside(database)
        with closing(InProcess(database, query_process.IN_USE)) as reader:
            reader.ask("BEGIN")
            assert reader.ask("PRAGMA integrity_check", 5.0).rows == [["ok"]]
            reader.ask("ROLLBACK")
        assert beside(database) == before


@pytest.mark.parametrize("length", [0, 32])
def test_an_empty_log_is_left_alone(database: Path, length: int) -> None:
    """SQLite deletes a log without transactions when the last user closes; we do not."""
    log = database.with_name(database.name + "-wal")
    log.write_bytes(bytes(length))
    age(database)
    before = beside(database)
    with closing(InProcess(database, query_process.LEFTOVER_LOG)) as reader:
        assert count(reader) == 500
    assert beside(database) == before


@pytest.mark.parametrize("sql", ["DELETE FROM t", "CREATE TABLE u (n)", "PRAGMA user_version=9"])
def test_nothing_can_be_written(database: Path, sql: str) -> None:
    """SQLite refuses to write, and leaves no trace of the attempt."""
    with opened(database):
        age(database)
        before = beside(database)
        with closing(InProcess(database, query_process.IN_USE)) as reader:
            assert reader.ask(sql).error == "SQLITE_READONLY"
        assert beside(database) == before


def test_a_writer_is_not_blocked(database: Path) -> None:
    """Writes succeed at once while a look goes on; a full checkpoint as soon as it has ended."""
    checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    with opened(database) as db, closing(InProcess(database, query_process.IN_USE)) as reader:
        db.execute("PRAGMA busy_timeout=0")
        reader.ask("BEGIN")
        assert count(reader) == 501
        with db:
            db.execute("INSERT INTO t (said) VALUES ('during')")
        assert db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
        assert db.execute(checkpoint).fetchone()[0] == 1
        reader.ask("ROLLBACK")
        assert db.execute(checkpoint).fetchone()[0] == 0
        assert count(reader) == 502


WRITER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("PRAGMA wal_autocheckpoint=20")
db.execute("PRAGMA synchronous=OFF")
print("ready", flush=True)
n = 0
while True:
    n += 1
    db.execute("BEGIN")
    db.execute("UPDATE t SET said = ? WHERE n % 7 = ?", (f"{n}" * 90, n % 7))
    db.execute("INSERT INTO t (said) VALUES (?)", ("y" * 400,))
    db.execute("DELETE FROM t WHERE n = (SELECT min(n) FROM t)")
    db.execute("COMMIT")
"""


def test_a_busy_writer_never_looks_like_damage(database: Path) -> None:
    """Checkpoints change pages between our reads, and every answer is right."""
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(database)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        answers: list[object] = []
        for _ in range(150):
            with closing(InProcess(database, query_process.IN_USE)) as reader:
                said = reader.ask("PRAGMA integrity_check", 5.0)
                answers.append(said.error or said.rows)
                answers.append(count(reader))
        assert {str(one) for one in answers} <= {"[['ok']]", "500"}
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()
