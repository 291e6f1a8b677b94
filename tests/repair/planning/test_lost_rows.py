"""A database that was deleted or renamed under a process is put back with all its rows."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import deleted_logs
from hermes_doctor.sqlite.repairs import merge_rows
from tests.helpers import crash_server, damage, support
from tests.helpers.real.gateways import end
from tests.repair.planning.test_deleted_logs import holding, late, run
from tests.scenarios.test_steps import Child, apply, item

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")
ALL = ("", "-wal", "-shm")
ROWS = {"order": 50, "killed": 50, "late": 57, "late-killed": 57, "again": 54}


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history with a mode of its own."""
    made = damage.history(home / "state.db")
    made.chmod(0o644)
    return made


def count(path: Path, where: str) -> int:
    """How many messages there are."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        [(number,)] = db.execute(f"SELECT count(*) FROM messages WHERE {where}")
        return int(number)


@pytest.mark.sampled
@pytest.mark.parametrize("how", ROWS)
def test_deleted(home: Path, path: Path, how: str) -> None:
    """However the process ends, and whatever it writes until then: every row is there."""
    before = count(path, "content NOT LIKE 'late%'")
    with holding(path, how, ALL) as service:
        assert not path.exists()

        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == ROWS[how]
        assert count(path, "content NOT LIKE 'late%'") == before
        assert path.stat().st_mode & 0o777 == 0o644
    [saved] = done.saved
    assert Vault(Home(home)).verify(Vault(Home(home)).load(saved)) == []
    assert done.settled == [saved], "none of its rows is missing"
    assert any("state.db is back" in note for note in done.items[0].notes)
    assert crash_server.leftovers(home) == []


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["order", "killed", "late-killed"])
@pytest.mark.parametrize("name", ["state.db.old", "state (copy).db", "old/state.db"])
def test_renamed(home: Path, path: Path, how: str, name: str) -> None:
    """The renamed file stays, and the rows of the log are in the one that is put back."""
    (home / name).parent.mkdir(exist_ok=True)
    with holding(path, how, ()) as service:
        path.rename(home / name)

        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == ROWS[how]
    assert (home / name).exists()


def new_database(path: Path, *texts: str) -> None:
    """What Hermes creates when it opens the database by name: with rows of its own."""
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with contextlib.closing(support.made("state.db", path)) as db, db:
        for number, text in enumerate(texts):
            db.execute(
                "INSERT OR IGNORE INTO sessions (id, source, started_at) VALUES ('n', '', 9)"
            )
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp)"
                " VALUES ('n', 'user', ?, ?)",
                (text, 9_000 + number),
            )
        db.execute("INSERT INTO state_meta (key, value) VALUES ('only here', '1')")


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["order", "killed"])
@pytest.mark.parametrize("texts", [(), ("new 1", "new 2")], ids=["empty", "with messages"])
def test_a_new_database_in_its_place(
    home: Path, path: Path, how: str, texts: tuple[str, ...]
) -> None:
    """Rows of both are there: the numbers of messages that both use are changed in the new ones."""
    before = count(path, "content NOT LIKE 'late%'")
    with holding(path, how, ALL) as service:
        new_database(path, *texts)

        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == 50
    assert count(path, "content NOT LIKE 'late%'") == before + len(texts)
    with contextlib.closing(sqlite3.connect(path)) as db:
        found = db.execute("SELECT content FROM messages WHERE session_id = 'n' ORDER BY id")
        assert [row[0] for row in found] == [*texts]
        assert db.execute("SELECT value FROM state_meta WHERE key = 'only here'").fetchall()
        hits = db.execute("SELECT count(*) FROM messages_fts WHERE messages_fts MATCH 'new'")
        assert hits.fetchone() == (len(texts),)


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>" * 500], ids=["no bytes", "html"])
def test_another_file_in_its_place(home: Path, path: Path, data: bytes) -> None:
    """It is kept in the backup of the run; the database that the process had open is back."""
    with holding(path, "killed", ALL) as service:
        support.put(path, data)

        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == 50
    backup = Vault(Home(home)).load(done.id)
    assert (backup.folder / "files" / "state.db").read_bytes() == data


def test_a_copy_that_somebody_put_there(home: Path, path: Path) -> None:
    """It shares messages with the lost one, so somebody restored it: both are kept."""
    copy = path.read_bytes()
    with holding(path, "killed", ALL) as service:
        support.put(path, copy)

        done = run(home, service)

        assert done.state == "done", done.note
    assert path.read_bytes() == copy
    assert done.saved and done.settled == []


def test_undo_takes_it_away_again(home: Path, path: Path) -> None:
    """After the undo the path is as before; the saved content is still in the vault."""
    with holding(path, "killed", ALL) as service:
        done = run(home, service)
        assert late(path) == 50
    undone = support.doctor("undo", done.id, "--yes", "--home", home)
    assert undone.code == 0, undone
    assert not path.exists()
    assert Vault(Home(home)).load(done.saved[0]).entry("state.db")


def test_a_process_that_is_not_the_gateway(home: Path, path: Path) -> None:
    """Its files are saved, nothing is stopped, and the operator reads what to type."""
    with holding(path, "order", ALL) as service:
        step = deleted_logs.save_deleted_logs(Probes(Home(home)), None)
        assert step is not None
        done = apply(home, item(step))
        reason = done.items[0].reason or ""
        assert f"process {service.running()}" in reason
        assert f"hermes-doctor backup restore {done.saved[0]} state.db" in reason
        assert service.log == []
    restored = support.doctor(
        "backup", "restore", done.saved[0], "state.db", "--yes", "--home", home
    )
    assert restored.code == 0, restored
    assert late(path) == 50


TWICE = """
import os, signal, sqlite3, sys, time
path, filler = sys.argv[1:3]
signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
free = [os.open("/dev/null", os.O_RDONLY) for _ in range(3)]

def write(db, name, count):
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(
        "INSERT OR IGNORE INTO sessions (id, source, started_at) VALUES (?, '', 9)", (name,)
    )
    for number in range(count):
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, 'user', ?, ?)",
            (name, f"late {name} {number} " * 8, number),
        )

first = sqlite3.connect(path, isolation_level=None)
write(first, "one", 20)
if filler == "reused descriptors":
    os.close(free[1])
print("first", flush=True)
sys.stdin.readline()
second = sqlite3.connect(path, isolation_level=None)
write(second, "two", 10)
print("second", flush=True)
while True:
    time.sleep(0.05)
"""
"""Has a database open that was deleted, and the one that was created and deleted after it."""


@contextlib.contextmanager
def holding_two(path: Path, filler: str, again: Callable[[Path], object]) -> Iterator[Child]:
    """A process that has two deleted databases open; `again` creates the second."""
    process = subprocess.Popen(
        [sys.executable, "-c", TWICE, str(path), filler],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    service = Child(path.parent / ".env", process)
    try:
        assert process.stdout.readline() == b"first\n"
        for suffix in ALL:
            path.with_name(path.name + suffix).unlink()
        again(path)
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"second\n"
        for suffix in ALL:
            path.with_name(path.name + suffix).unlink()
        yield service
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)
        if service.process is not None:
            end(service.process)


@pytest.mark.sampled
@pytest.mark.parametrize("then", ["missing", "new"])
@pytest.mark.parametrize("filler", ["in order", "reused descriptors"])
def test_deleted_twice(home: Path, path: Path, filler: str, then: str) -> None:
    """The rows of both deleted files are put back, and those of a third one that is there."""
    before = count(path, "1")
    with holding_two(path, filler, new_database) as service:
        if then == "new":
            new_database(path, "new 1", "new 2")

        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == 30
    assert count(path, "content NOT LIKE 'late%'") == before + (2 if then == "new" else 0)
    assert len(done.saved) == 2 and done.settled == sorted(done.saved)
    folders = {saved: Vault(Home(home)).load(saved).folder / "files" for saved in done.saved}
    rows = [late_copy(folder, home.parent / saved) for saved, folder in folders.items()]
    assert sorted(rows) == [10, 20], "each log is saved with its own file"


def late_copy(folder: Path, target: Path) -> int:
    """How many rows of the holder are in a backup."""
    target.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"state.db{suffix}", target / f"state.db{suffix}")
    return late(target / "state.db")


def test_deleted_twice_with_common_messages(home: Path, path: Path) -> None:
    """Somebody restored a copy in between: which is right is not known, so none is settled."""
    copy = path.read_bytes()
    with holding_two(path, "in order", lambda place: support.put(place, copy)) as service:
        done = run(home, service)

        reason = done.items[0].reason or ""
        assert done.items[0].outcome == "refused"
        assert all(one in reason for one in done.saved) and len(done.saved) == 2
    assert not path.exists()
    assert done.settled == []


def comments(path: Path, *texts: str) -> Path:
    """A board with a task, and with comments that have the numbers 1, 2, ..."""
    task = texts[0].split()[0]
    with contextlib.closing(support.made("kanban.db", path)) as db, db:
        db.execute(
            "INSERT INTO tasks (id, title, status, created_at) VALUES (?, 'x', 'todo', 1)", (task,)
        )
        for text in texts:
            db.execute(
                "INSERT INTO task_comments (task_id, author, body, created_at)"
                " VALUES (?, 'me', ?, 1)",
                (task, text),
            )
            db.execute(
                "INSERT INTO task_runs (task_id, status, started_at) VALUES (?, 'done', 1)", (task,)
            )
    return path


def test_rows_with_the_same_numbers(tmp_path: Path) -> None:
    """They get new numbers if nothing refers to them; the others are counted, not dropped."""
    lost = comments(tmp_path / "lost.db", *(f"old {number}" for number in range(5)))
    current = comments(tmp_path / "current.db", "new 1", "new 2", "new 2")

    merged = merge_rows.add_rows_of(lost, current)

    with contextlib.closing(sqlite3.connect(lost)) as db:
        found = db.execute("SELECT body FROM task_comments ORDER BY id").fetchall()
        assert [row[0] for row in found[5:]] == ["new 1", "new 2", "new 2"]
        assert db.execute("SELECT count(*) FROM tasks").fetchone() == (2,)
        assert db.execute("SELECT count(*) FROM task_runs").fetchone() == (5,)
    assert merged.left == {"task_runs": 3}
    assert "task_comments: 3 rows of the new database were added." in merged.said


def test_not_all_rows_fit(home: Path, path: Path) -> None:
    """What is left out is said with the backup that has it, instead of "with all rows"."""
    with holding(path, "killed", ALL) as service:
        new_database(path, "new 1")
        damage.execute(
            path,
            "CREATE TABLE IF NOT EXISTS only_here (id INTEGER PRIMARY KEY)",
            "INSERT INTO only_here VALUES (1), (2)",
        )

        done = run(home, service)

        assert done.state == "done", done.note
    notes = " ".join(done.items[0].notes)
    assert (
        f"only_here: 2 rows of the new database were not added; they are in backup {done.id}."
    ) in notes
    assert "with all rows" not in notes and "state.db is back" in notes
