"""A run that was interrupted, and a database that somebody has worked on since.

A database and the files beside it are one thing. An old database under a new log, or the
reverse, is neither, so that recovery must leave them together or not touch them at all.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import crash_server, support
from tests.helpers.crash_server import Cut, Ended, Server

FIX = ("fix", "KANBAN-SCHEMA", "--apply", "--yes")
WRITER = """
import os, sqlite3, sys
path, mode, commit = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None)
db.execute(f"PRAGMA journal_mode={mode}")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("PRAGMA cache_size=1")
db.execute("BEGIN IMMEDIATE")
db.execute("INSERT INTO tasks (id, title, status, created_at) VALUES ('t2', 'since', 'todo', 2)")
if commit == "no":  # so much that half of it is in the file already
    db.execute("UPDATE tasks SET title = 'half'")
    db.execute("CREATE TABLE filler AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
               "FROM n WHERE i < 500) SELECT i, hex(randomblob(400)) AS x FROM n")
else:
    db.execute("COMMIT")
os._exit(0)
"""
"""A Hermes that is killed right after, or in the middle of, its work."""


@pytest.fixture(scope="module")
def server() -> Server:
    """The warm process."""
    return crash_server.serving()


@pytest.fixture
def board(home: Path) -> Path:
    """A kanban database that lacks a column."""
    (home / "kanban.db").unlink()
    return crash_server.lacking(home / "kanban.db")


def cut_off(server: Server, board: Path, moment: str) -> None:
    """Kill a fix right before or right after the new database is swapped in."""
    home = board.parent
    copy = crash_server.clone(home, home.with_name("rehearsal"))
    calls = server(*FIX, "--home", copy).calls
    shutil.rmtree(copy)
    [swap] = [n for n, c in enumerate(calls) if c.name == "exchange" and c.path.endswith(".new")]
    ended = server(*FIX, "--home", home, cuts=(Cut(swap + (moment == "after"), "kill"),))
    assert ended.code == -9, ended.said
    assert crash_server.journals(home)[-1]["state"] == "committing"


def logging(board: Path, mode: str) -> None:
    """Have the board log in that mode from the start: a writer then need not touch the file."""
    with contextlib.closing(sqlite3.connect(board)) as db:
        db.execute(f"PRAGMA journal_mode={mode}")


def write(board: Path, mode: str, *, commit: bool = True) -> None:
    """Let a Hermes work on the board as it is now, and die."""
    words = [str(board), mode, "yes" if commit else "no"]
    subprocess.run([sys.executable, "-c", WRITER, *words], check=True)


def titles(board: Path) -> list[str]:
    """The tasks, as the next Hermes will see them."""
    with contextlib.closing(sqlite3.connect(board)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [title for (title,) in db.execute("SELECT title FROM tasks ORDER BY id")]


def columns(board: Path) -> list[str]:
    """The columns of the tasks."""
    with contextlib.closing(sqlite3.connect(board)) as db:
        return [row[1] for row in db.execute("PRAGMA table_info(tasks)")]


def saved(home: Path, name: str) -> list[bytes]:
    """Every copy of a file in the vault."""
    return [path.read_bytes() for path in home.glob(f"backups/doctor/2*/files/{name}")]


def recover(server: Server, home: Path) -> Ended:
    """The next command; it must say what became of the run."""
    done = server("undo", "--yes", "--home", home)
    assert "was interrupted" in done.said
    assert "bug in" not in done.said
    assert crash_server.leftovers(home) == []
    return done


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_rows_since(server: Server, board: Path, moment: str, mode: str) -> None:
    """A row that was written after the cut is there after the recovery, wherever it lay."""
    logging(board, mode)
    old = board.read_bytes()
    cut_off(server, board, moment)
    write(board, mode)
    assert Path(f"{board}-wal").exists() is (mode == "WAL")

    done = recover(server, board.parent)

    assert titles(board) == ["a task", "since"]
    assert saved(board.parent, "kanban.db") == [old]
    if moment == "after":
        assert "kanban.db has been used since" in done.said
        assert "the run is not rolled back but finished" in done.said
        assert "session_id" in columns(board)
    else:
        assert "what was written to kanban.db since is kept" in done.said
        assert done.code == 0


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_half_a_transaction_since(server: Server, board: Path, moment: str, mode: str) -> None:
    """A journal that has to be rolled back stays with the database that it belongs to."""
    logging(board, mode)
    cut_off(server, board, moment)
    write(board, mode, commit=False)
    if mode == "DELETE":
        assert Path(f"{board}-journal").stat().st_size

    recover(server, board.parent)

    assert titles(board) == ["a task"]
    assert ("session_id" in columns(board)) is (moment == "after")


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_log_before_and_a_log_since(server: Server, board: Path, moment: str) -> None:
    """What was only in the old log and what is in the new one are both in the database."""
    crash_server.logged(board, "UPDATE tasks SET title = 'only in the log'")
    old = Path(f"{board}-wal").read_bytes()
    cut_off(server, board, moment)
    assert not Path(f"{board}-wal").exists()
    write(board, "WAL")

    recover(server, board.parent)

    assert titles(board) == ["only in the log", "since"]
    assert saved(board.parent, "kanban.db-wal") == [old]


def test_nobody_was_there(server: Server, board: Path) -> None:
    """An empty log is nobody's work: the run is taken back, and everything is as before."""
    before = crash_server.state(board.parent)
    cut_off(server, board, "after")
    support.put(Path(f"{board}-wal"), b"")

    done = recover(server, board.parent)

    assert "everything is as it was before" in done.said
    Path(f"{board}-wal").unlink(missing_ok=True)
    assert crash_server.state(board.parent) == before


def test_an_undo_that_was_cut_off(server: Server, board: Path) -> None:
    """The same when it is an undo that was killed: the rows since are there."""
    home = board.parent
    logging(board, "WAL")
    assert server(*FIX, "--home", home).code == 0
    copy = crash_server.clone(home, home.with_name("rehearsal"))
    calls = server("undo", "--yes", "--home", copy).calls
    shutil.rmtree(copy)
    swaps = [n for n, c in enumerate(calls) if c.name == "exchange"]
    ended = server("undo", "--yes", "--home", home, cuts=(Cut(swaps[-1] + 1, "kill"),))
    assert ended.code == -9
    write(board, "WAL")

    server("fix", "--home", home, "--apply", "--yes")

    assert titles(board) == ["a task", "since"]


def test_a_connection_of_another_container(board: Path) -> None:
    """Without a write-ahead log it holds no lock between its transactions: it is seen anyway."""
    logging(board, "DELETE")
    apart = crash_server.serving(alone=True)
    with contextlib.closing(sqlite3.connect(board, isolation_level=None)) as hermes:
        assert hermes.execute("SELECT count(*) FROM tasks").fetchone() == (1,)
        old = board.read_bytes()
        refused = apart(*FIX, "--home", board.parent)
        assert refused.code == 2, refused.said
        assert "kanban.db is in use by" in refused.said and "Nothing was changed" in refused.said
        assert board.read_bytes() == old
        hermes.execute("UPDATE tasks SET title = 'goes on'")
    assert apart(*FIX, "--home", board.parent).code == 0
    assert titles(board) == ["goes on"]


@pytest.mark.sampled
@pytest.mark.parametrize("moment", ["before", "after"])
def test_hermes_is_still_running(server: Server, board: Path, moment: str) -> None:
    """A run is ended under a Hermes that has started since: its database stays where it is."""
    crash_server.logged(board, "UPDATE tasks SET title = 'only in the log'")
    cut_off(server, board, moment)
    with contextlib.closing(sqlite3.connect(board, isolation_level=None)) as hermes:
        hermes.execute("PRAGMA journal_mode=WAL")
        hermes.execute("INSERT INTO tasks (id, title, status, created_at) VALUES ('t2','a',1,2)")
        ended = server(*FIX, "--home", board.parent)
        assert "was interrupted" in ended.said, ended.said
        assert crash_server.leftovers(board.parent) == []
        hermes.execute("INSERT INTO tasks (id, title, status, created_at) VALUES ('t3','b',1,2)")
    assert titles(board) == ["only in the log", "a", "b"]
