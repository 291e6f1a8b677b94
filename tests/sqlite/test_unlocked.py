"""Reading without locks: the rows are right, and nothing is written, locked or left behind."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import inspector, unlocked
from hermes_doctor.sqlite.unlocked import Unlocked


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


def count(reader: Unlocked) -> int:
    answer = reader.ask("SELECT count(*) FROM t", 5.0)
    assert answer.error is None, answer
    return int(answer.rows[0][0])


def test_rows_of_the_log_are_read(database: Path) -> None:
    """What is only in the write-ahead log counts."""
    with opened(database), closing(Unlocked(database, inspector.IN_USE)) as reader:
        assert count(reader) == 501


def test_the_log_can_be_ignored(database: Path) -> None:
    """Without its log, the file is read as it is."""
    with opened(database), closing(Unlocked(database, inspector.NOT_IN_USE)) as reader:
        assert count(reader) == 500


def test_nothing_is_changed(database: Path) -> None:
    """A whole integrity check leaves every file as it was, with its times."""
    with opened(database):
        age(database)
        before = beside(database)
        with closing(Unlocked(database, inspector.IN_USE)) as reader:
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
    with closing(Unlocked(database, inspector.IN_USE)) as reader:
        assert count(reader) == 500
    assert beside(database) == before


@pytest.mark.parametrize("sql", ["DELETE FROM t", "CREATE TABLE u (n)", "PRAGMA user_version=9"])
def test_nothing_can_be_written(database: Path, sql: str) -> None:
    """SQLite refuses to write, and leaves no trace of the attempt."""
    age(database)
    before = beside(database)
    with closing(Unlocked(database, inspector.IN_USE)) as reader:
        assert reader.ask(sql).error == "SQLITE_READONLY"
    assert beside(database) == before


def test_a_writer_is_not_blocked(database: Path) -> None:
    """An exclusive transaction and a full checkpoint succeed while a query is open."""
    with closing(Unlocked(database, inspector.IN_USE)) as reader:
        assert count(reader) == 500
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as db:
            db.execute("BEGIN EXCLUSIVE")
            db.execute("INSERT INTO t (said) VALUES ('during')")
            db.execute("COMMIT")
            assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
            assert count(reader) == 501


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
            with closing(Unlocked(database, inspector.IN_USE)) as reader:
                said = reader.ask("PRAGMA integrity_check", 5.0)
                answers.append(said.error or said.rows)
                answers.append(count(reader))
        assert {str(one) for one in answers} <= {"[['ok']]", "500"}
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


@pytest.fixture
def disturbed(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unlocked]:
    """A reader of a database into which somebody writes all the time."""
    states = iter(range(1000))
    with opened(database), closing(Unlocked(database, inspector.IN_USE)) as reader:
        monkeypatch.setattr(reader, "_state", lambda: next(states))
        yield reader


def test_a_writer_that_always_comes_between(disturbed: Unlocked) -> None:
    """Then a separate process answers, with locks."""
    assert count(disturbed) == 501
    assert disturbed.locked is not None
    assert disturbed.ask("PRAGMA integrity_check", 5.0).rows == [["ok"]]


def test_a_transaction_sees_one_state_or_none(database: Path) -> None:
    """Its queries are compared with each other, so a writer in between ends it."""
    with (
        closing(sqlite3.connect(database, isolation_level=None)) as db,
        closing(Unlocked(database, inspector.IN_USE)) as reader,
    ):
        db.execute("PRAGMA wal_autocheckpoint=0")
        db.execute("INSERT INTO t (said) VALUES ('before')")
        reader.ask("SELECT 1")
        assert reader.ask("BEGIN").error is None
        assert count(reader) == 501
        db.execute("INSERT INTO t (said) VALUES ('only in the log')")
        assert count(reader) == 501
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with pytest.raises(CouldNotLook, match="another program is writing"):
            count(reader)
        assert reader.ask("ROLLBACK").error is None
        assert count(reader) == 502


def test_an_unusual_sqlite_is_not_used(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python can be built with an SQLite whose functions cannot be reached."""

    class BuiltIn:
        """A module without a file."""

    monkeypatch.setattr(unlocked, "_sqlite3", BuiltIn)
    unlocked._register.cache_clear()
    with pytest.raises(CouldNotLook, match="without locks"):
        Unlocked(database, inspector.IN_USE)
    unlocked._register.cache_clear()


def test_a_wrong_descriptor_is_noticed(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If SQLite keeps its descriptor elsewhere one day, the file is not read this way."""
    monkeypatch.setattr(unlocked, "_DESCRIPTOR_AT", 28)
    with pytest.raises(CouldNotLook, match="cannot open"):
        Unlocked(database, inspector.IN_USE)


def test_closing_does_not_wait_for_an_abandoned_query(database: Path) -> None:
    """A thread that hangs in a read keeps the reader; who closes it goes on."""
    reader = Unlocked(database, inspector.NOT_IN_USE)
    with reader.guard:
        reader.close()  # would wait for ever
        assert reader.connection.execute("SELECT 1").fetchall() == [(1,)], "still open"
    reader.close()
    with pytest.raises(sqlite3.ProgrammingError):
        reader.connection.execute("SELECT 1")
