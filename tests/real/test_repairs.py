"""Each damage on homes of real releases: found, repaired, used by that release, and undone."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import RELEASES, need_release, once
from tests.helpers import damage, support
from tests.helpers.real.release_homes import KILLED, Patient, undo
from tools import real_home

pytestmark = pytest.mark.real

MORE = """
import os
from pathlib import Path
home = Path(os.environ["HERMES_HOME"])
from hermes_state import SessionDB
history = SessionDB(home / "state.db")
for name in ("two", "three"):
    history.create_session(name, "cli", model="test-model")
    history.append_message(name, "user", "a short talk")
history.set_session_title("one", "the first")
for n in range(120):
    text = f"more of it, number {n} " * (200 if n % 15 == 0 else n % 30)
    history.append_message("one", "tool" if n % 3 else "user", text)
history.close()
from gateway.platforms.api_server import ResponseStore
store = ResponseStore(db_path=str(home / "response_store.db"))
for n in range(40):
    store.put(f"r{n}", {"n": n, "text": "an answer " * 30})
store.set_conversation("good", "r1")
store.close()
try:
    from cron import executions
except ImportError:
    executions = None
if executions:
    for n in range(60):
        executions.create_execution(f"job {n}", source="test")
"""
"""A longer history, answers of the API server, and where the release has them, runs of jobs."""

MESSAGES = 40 + 120

USE = """
import json, os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
sessions = sorted(one["id"] for one in history.list_sessions_rich())
messages = len(history.get_messages("one"))
old = len(history.search_messages("message number"))
history.append_message("one", "user", "written afterwards")
new = len(history.search_messages("afterwards"))
more = len(history.get_messages("one")) - messages
history.close()
print(json.dumps([sessions, messages, old, new, more]))
"""
"""Lists sessions, reads, searches and appends, with the release's own code."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """By release: a folder with a home, an older history of it, and one with a log; made once."""

    def make(version: str) -> Path:
        need_release(version)
        return once(tmp_path_factory, f"repairs-{version}", lambda folder: _make(version, folder))

    return make


def _make(version: str, folder: Path) -> None:
    home = real_home.make(version, folder / "home")
    shutil.copy(home / "state.db", folder / "older.db")
    real_home.run(version, home, MORE)
    damage.settle(home / "response_store.db")
    shutil.copytree(home, folder / "killed")
    with contextlib.suppress(RuntimeError):
        real_home.run(version, folder / "killed", KILLED)


@dataclass(frozen=True)
class Case:
    """One damage: what it does, what it is called, what cures it, how much is there again."""

    spoil: Callable[[Path, Path], None]
    code: str
    fix: str
    saved: float = 1.0
    """How many of the messages, at least."""


def _state(fault: Callable[[Path], None]) -> Callable[[Path, Path], None]:
    return lambda home, _: fault(home / "state.db")


def _sql(*statements: str) -> Callable[[Path, Path], None]:
    return lambda home, _: damage.execute(home / "state.db", *statements)


def _bytes(at: int, data: bytes) -> Callable[[Path, Path], None]:
    return lambda home, _: damage.write(home / "state.db", data, at)


def _foreign_log(home: Path, shared: Path) -> None:
    """What a restore under the log of a killed process leaves."""
    shutil.copy(shared / "older.db", home / "state.db")
    shutil.copy(shared / "killed" / "state.db-wal", home / "state.db-wal")


def _broken_log(home: Path, shared: Path) -> None:
    for suffix in ("", "-wal"):
        shutil.copy(shared / "killed" / f"state.db{suffix}", home / f"state.db{suffix}")
    frame = damage.PAGE + 24
    frames = ((home / "state.db-wal").stat().st_size - 32) // frame
    damage.write(home / "state.db-wal", b"garbage" * 9, 32 + frames // 2 * frame + 1000)


CASES = {
    "magic": Case(_bytes(0, bytes(16)), "DB-NOTADB", "write-magic"),
    "header": Case(_bytes(0, bytes(100)), "DB-NOTADB", "rewrite-header"),
    "first page": Case(_bytes(0, bytes(damage.PAGE)), "DB-NOTADB", "salvage-rows"),
    "cut off": Case(_state(damage.cut_off), "DB-TRUNCATED", "salvage-rows", 0.3),
    "rows": Case(_state(damage.rows_zeroed), "DB-MALFORMED", "salvage-rows", 0.9),
    "index": Case(_state(damage.index_zeroed), "DB-INDEX", "rebuild-indexes"),
    "search structure": Case(_state(damage.search_structure), "DB-FTS-CORRUPT", "rebuild-fts"),
    "search table": Case(_state(damage.search_table_gone), "DB-FTS-CORRUPT", "rebuild-fts"),
    "search rows": Case(_state(damage.search_lacks_rows), "DB-FTS-CORRUPT", "rebuild-fts"),
    "foreign log": Case(_foreign_log, "DB-WAL-STALE", "set-aside-log", 0.2),
    "broken log": Case(_broken_log, "DB-WAL-BROKEN", "salvage-rows"),
    "settings": Case(
        _sql("UPDATE sessions SET model_config = '{broken' WHERE id = 'two'"),
        "DB-JSON",
        "mend-rows",
    ),
    "titles": Case(
        _sql("DROP INDEX idx_sessions_title_unique", "UPDATE sessions SET title = 'the same'"),
        "DB-TITLES",
        "mend-rows",
    ),
    "version": Case(
        _sql("UPDATE schema_version SET version = 'eleven'"), "DB-SCHEMAVERSION", "mend-rows"
    ),
}


def patient_of(version: str, shared: Path, tmp_path: Path) -> Patient:
    """A copy of the home of that release."""
    return Patient(version, support.copy_home(shared / "home", tmp_path / "home"))


def repaired(patient: Patient, code: str, fix: str, subject: str) -> dict[str, Any]:
    """It is found with that fix, which cures it; what it was found like before."""
    found = patient.finding(code)
    assert (found["subject"], found["fix"]["id"]) == (subject, fix)
    sick = support.contents(patient.home)

    done = patient.doctor("fix", code, "--apply", "--yes", "--json")

    assert done.code == 0, done.out + done.err
    assert code not in done.codes
    return sick


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", RELEASES)
def test_history(version: str, case: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    """The release lists, reads, searches and appends again; undo gives the damage back."""
    shared, one = made(version), CASES[case]
    patient = patient_of(version, shared, tmp_path)
    one.spoil(patient.home, shared)

    sick = repaired(patient, one.code, one.fix, "state.db")

    sessions, messages, old, new, more = json.loads(patient.ask(USE))
    expected = ["one"] if case == "foreign log" else ["one", "three", "two"]
    assert sessions == expected
    assert messages >= one.saved * MESSAGES
    assert old > 0
    assert (new, more) == (1, 1)
    undo(patient, sick)


@pytest.mark.wide
def test_neither_active_nor_not(made: Callable[[str], Path], tmp_path: Path) -> None:
    """The one of these releases that leaves such messages out shows them again."""
    shared = made("0.16.0")
    patient = patient_of("0.16.0", shared, tmp_path)
    path = patient.home / "state.db"
    damage.surgery(
        path,
        "UPDATE sqlite_master SET sql = replace(sql, 'active INTEGER NOT NULL DEFAULT 1', "
        "'active INTEGER') WHERE name = 'messages'",
    )
    damage.execute(path, "UPDATE messages SET active = NULL WHERE id > 20")
    assert json.loads(patient.ask(USE))[1] < 30

    sick = repaired(patient, "DB-ACTIVE-NULL", "mend-rows", "state.db")

    _, messages, _, new, more = json.loads(patient.ask(USE))
    assert (messages, new, more) == (MESSAGES, 1, 1)
    undo(patient, sick)


STORE = """
import json, os
from gateway.platforms.api_server import ResponseStore
store = ResponseStore(db_path=os.path.join(os.environ["HERMES_HOME"], "response_store.db"))
count, kept = len(store), store.get("r1")
store.put("new", {"n": 1})
print(json.dumps([count, kept is not None, store.get("new"), store.get_conversation("bad")]))
store.close()
"""


@pytest.mark.parametrize("version", RELEASES)
def test_answers(version: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    """Rows that fail requests go, the others stay; a file that cannot be read goes as a whole."""
    patient = patient_of(version, made(version), tmp_path)
    path = patient.home / "response_store.db"
    damage.execute(
        path,
        "UPDATE responses SET data = '{broken' WHERE response_id = 'r7'",
        "UPDATE responses SET data = x'7b7d' WHERE response_id = 'r8'",
        "INSERT INTO conversations VALUES ('bad', 'r7')",
    )

    sick = repaired(patient, "RESPSTORE", "evict-responses", "response_store.db")
    assert json.loads(patient.ask(STORE)) == [38, True, {"n": 1}, None]
    undo(patient, sick)

    support.put(path, b"something else\n" * 1000)
    sick = repaired(patient, "DB-NOTADB", "set-aside-cache", "response_store.db")
    assert json.loads(patient.ask(STORE)) == [0, False, {"n": 1}, None]
    undo(patient, sick)


def test_runs_of_jobs(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Without its list of runs, which it makes anew, the release runs jobs again."""
    patient = patient_of("0.19.0", made("0.19.0"), tmp_path)
    path = patient.home / "cron" / "executions.db"
    damage.settle(path)
    damage.zero(path, damage.leaves(path, "executions")[1])

    sick = repaired(patient, "DB-MALFORMED", "set-aside-cache", "cron/executions.db")

    assert (
        patient.ask(
            "from cron import executions\n"
            "executions.create_execution('a job', source='test')\n"
            "print(len(executions.list_executions()))"
        )
        == "1\n"
    )
    undo(patient, sick)


@pytest.mark.parametrize("version", RELEASES)
def test_board(version: str, made: Callable[[str], Path], tmp_path: Path) -> None:
    """Every task of a damaged board is there again for the release."""
    patient = patient_of(version, made(version), tmp_path)
    path = patient.home / "kanban.db"
    damage.settle(path)
    damage.zero(path, damage.leaves(path, "task_events")[0])

    sick = repaired(patient, "KANBAN-CORRUPT", "salvage-rows", "kanban.db")

    assert (
        patient.ask(
            "import os\nfrom pathlib import Path\nfrom hermes_cli import kanban_db\n"
            "board = kanban_db.connect(Path(os.environ['HERMES_HOME']) / 'kanban.db')\n"
            "kanban_db.create_task(board, title='one more', body='its text')\n"
            "print(sorted(task.title for task in kanban_db.list_tasks(board)))"
        )
        == "['one more', 'task number 0', 'task number 1', 'task number 2']\n"
    )
    undo(patient, sick)
