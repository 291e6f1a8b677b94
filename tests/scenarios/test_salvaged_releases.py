"""Databases that real releases made, damaged, saved, and given back to the same release."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import salvage_fixture
from benchmarks.faults import LIVE, damage
from hermes_doctor.hermes.knowledge import atlas
from tests.conftest import RELEASES, need_release, once
from tests.helpers.salvage_history import copy, rows, saved, zero
from tools import releases

pytestmark = pytest.mark.real
Made = Callable[[str], Path]

HISTORY = """
import json, sys
from pathlib import Path
from hermes_state import SessionDB
database = SessionDB(Path(sys.argv[1]))
listed = [one["id"] for one in database.list_sessions_rich(limit=1000)]
found = [one["id"] for one in database.search_messages(sys.argv[2])]
database.append_message(listed[0], "user", "quokkas after all that")
new = [one["id"] for one in database.search_messages("quokkas")]
database.close()
print(json.dumps({"listed": len(listed), "found": found, "new": len(new)}))
"""
BOARD = """
import json, sys
from pathlib import Path
from hermes_cli import kanban_db
board = kanban_db.connect(Path(sys.argv[1]))
known = len(kanban_db.list_tasks(board))
kanban_db.create_task(board, title="one more")
print(json.dumps([known, len(kanban_db.list_tasks(board))]))
"""
RESPONSES = """
import json, sys
from gateway.platforms.api_server import ResponseStore
store = ResponseStore(db_path=sys.argv[1])
print(json.dumps([store.get(name) is not None for name in sys.argv[2:]]))
"""
UPGRADE = """
import sys
from pathlib import Path
from hermes_state import SessionDB
SessionDB(Path(sys.argv[1])).close()
"""


@pytest.fixture
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The databases of a release, made once a session."""

    def make(version: str) -> Path:
        need_release(version)
        script = Path(salvage_fixture.__file__).read_text()
        return (
            once(
                tmp_path_factory,
                f"salvage-{version}",
                lambda folder: hermes(version, script, folder / "made", "600"),
            )
            / "made"
        )

    return make


def hermes(version: str, script: str, *args: str | Path) -> str:
    """Run a script in the environment of a release, away from everything of ours."""
    home = Path(args[0]).parent / "hermes-home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [str(releases.python_of(version)), "-c", script, *map(str, args)],
        env={"HERMES_HOME": str(home), "HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def truth(folder: Path, work: Path, fault: str) -> Path:
    """What there was before this damage."""
    if fault not in LIVE:
        return folder / "state.db"
    path = copy(folder / "live.db", work / "truth.db")
    copy(folder / "live.db-wal", work / "truth.db-wal")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


FAULTS = {
    "magic overwritten": 0,
    "page 1 zeroed": 0,
    "10 leaves of messages zeroed": 80,
    "root of messages zeroed": 0,
    "all interior pages of messages zeroed": 0,
    "root of sessions zeroed": 0,
    "50 bits flipped": 12,
    "cut to 90 %": 30,
    "log damaged in the middle": 0,
    "log head damaged": 0,
    "freelist page overwritten": 0,
    "full text: structure overwritten": 0,
    "schema: row deleted": 0,
    "schema: root of another table": 0,
    "page size doubled": 0,
    "encoding wrong": 0,
    "stale journal": 0,
}
"""With how many messages of about 600 may be other than they were."""


@pytest.mark.wide
@pytest.mark.parametrize("version", RELEASES)
def test_faults(made: Made, tmp_path: Path, version: str) -> None:
    """Messages and sessions come back, nothing else does, and the account holds."""
    folder = made(version)
    plan = atlas.blueprint("state.db", version)
    for number, (fault, most) in enumerate(FAULTS.items()):
        work = tmp_path / str(number)
        work.mkdir()
        before = truth(folder, work, fault)
        (work / "sick").mkdir()
        sick = damage(fault, folder / "state.db", work / "sick" / "state.db")
        target, account = saved(sick, work, plan)
        was, now = rows(before, "messages"), rows(target, "messages")
        exact = sum(now.get(key) == row for key, row in was.items())
        assert len(was) - exact <= most, fault
        assert set(now) <= set(was), fault
        assert set(rows(target, "sessions", "id")) <= set(rows(before, "sessions", "id")), fault
        told = account.table("messages")
        assert told and told.kept == len(now), fault


@pytest.mark.sampled
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    "fault", ["page 1 zeroed", "10 leaves of messages zeroed", "root of sessions zeroed"]
)
def test_hermes_goes_on(made: Made, tmp_path: Path, version: str, fault: str) -> None:
    """It lists the sessions, finds an old message, and writes a new one."""
    folder = made(version)
    plan = atlas.blueprint("state.db", version)
    (tmp_path / "sick").mkdir()
    sick = damage(fault, folder / "state.db", tmp_path / "sick" / "state.db")
    target, _ = saved(sick, tmp_path, plan)
    word, number = rare_word(folder / "state.db")
    told = json.loads(hermes(version, HISTORY, target, word))
    assert told["listed"] == len(rows(folder / "state.db", "sessions"))
    assert number in told["found"]
    assert told["new"] == 1


def rare_word(path: Path) -> tuple[str, int]:
    """A word of an old message that is said but once, and the message's number."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        said: dict[str, list[int]] = {}
        for number, text in database.execute("SELECT id, content FROM messages ORDER BY id"):
            for word in set((text or "").split()):
                said.setdefault(word, []).append(number)
    return next(
        (word, numbers[0])
        for word, numbers in said.items()
        if len(numbers) == 1 and len(word) > 5 and word.isascii() and word.isalpha()
    )


@pytest.mark.sampled
@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize("fault", ["header zeroed", "page 1 zeroed", "page size doubled"])
def test_boards_and_responses(made: Made, tmp_path: Path, version: str, fault: str) -> None:
    """The other databases, also where their whole schema lay on the first page."""
    folder = made(version)
    for name, tables in (
        ("kanban", ("tasks", "task_comments", "task_events", "task_links")),
        ("response_store", ("responses", "conversations")),
    ):
        work = tmp_path / name
        (work / "sick").mkdir(parents=True)
        plan = atlas.blueprint(f"{name}.db", version)
        sick = damage(fault, folder / f"{name}.db", work / "sick" / f"{name}.db")
        target, _ = saved(sick, work, plan)
        for table in tables:
            assert rows(target, table) == rows(folder / f"{name}.db", table), (name, table)
    known, more = json.loads(hermes(version, BOARD, tmp_path / "kanban" / "saved.db"))
    assert (known, more) == (len(rows(folder / "kanban.db", "tasks")), known + 1)
    store = tmp_path / "response_store" / "saved.db"
    names = [key.decode() for key in rows(folder / "response_store.db", "responses", "response_id")]
    assert all(json.loads(hermes(version, RESPONSES, store, *names)))


@pytest.mark.wide
def test_the_order_of_columns_after_an_upgrade(made: Made, tmp_path: Path) -> None:
    """A file of the oldest release opened by the newest has its columns in another order; when
    the whole schema is lost the records themselves tell which.
    """
    old = made(RELEASES[0])
    need_release(RELEASES[-1])
    upgraded = copy(old / "state.db", tmp_path / "upgraded.db")
    hermes(RELEASES[-1], UPGRADE, upgraded)
    plan = atlas.blueprint("state.db", RELEASES[-1])
    sick = copy(upgraded, tmp_path / "state.db")
    with contextlib.closing(sqlite3.connect(f"file:{upgraded}?mode=ro", uri=True)) as database:
        pages = [
            row[0]
            for row in database.execute("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'")
        ]
    zero(sick, *pages)
    target, _ = saved(sick, tmp_path, plan)
    assert rows(target, "messages") == rows(upgraded, "messages")
    assert rows(target, "sessions") == rows(upgraded, "sessions")
