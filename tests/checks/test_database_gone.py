"""DB-GONE: a database that was there, by what is left of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding, Severity, Status
from tests.helpers import damage, support
from tests.helpers.one_check import ask


def gone(home: Path) -> list[Finding]:
    """What the check says once there is no state.db."""
    (home / "state.db").unlink()
    return ask("database-gone", home)[1]


def test_a_fresh_home(tmp_path: Path) -> None:
    """A home that never had a database, or that has only just been made, is silent."""
    home = tmp_path / "home"
    support.put(home / "config.yaml", support.CONFIG)
    support.put(home / "sessions" / "sessions.json", "{}")

    assert ask("database-gone", home)[1] == []


def test_a_whole_home(home: Path) -> None:
    """Databases that a home need not have are not missed."""
    result, findings = ask("database-gone", home)

    assert (result.status, findings) == (Status.OK, [])


def test_its_log_is_left(home: Path) -> None:
    """The log may hold every row, and SQLite deletes it at the next start."""
    damage.with_log(damage.history(home / "state.db"), index=False)

    [finding] = gone(home)

    assert (finding.code, finding.severity) == ("DB-GONE", Severity.CRITICAL)
    assert finding.fix == "salvage-rows"
    assert "deletes" in finding.detail


@pytest.mark.parametrize("place", ["state-snapshots/2026", "backups/doctor/2026/files", "."])
def test_copies(home: Path, place: str) -> None:
    """A snapshot of Hermes', a backup, or a copy beside it."""
    name = "state.db.bak" if place == "." else "state.db"
    copy = home / place / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(home / "state.db", copy)

    [finding] = gone(home)

    assert finding.fix == "restore-database"
    assert finding.evidence[0].where.endswith(name)


TRACES = {
    "sessions/one.jsonl": "{}\n",
    "sessions/sessions.json": '{"agent:main:qq:dm:1": {"session_id": "20261115_001248_df794ef7"}}',
    "logs/agent.log": "2026-11-15 00:35:09,004 INFO [20261115_001248_df794ef7] agent: a turn\n",
    "logs/gateway.log": "2026-11-15 00:35:09,004 INFO gateway.run: Session storage: /h/sessions\n",
    "gateway_state.json": '{"pid": 1, "gateway_state": "stopped", "platforms": {}}',
    "cron/output/job/2026.md": "an answer",
    "pending_messages/one.json": "[]",
    "backups/doctor/runs/20261115-000000-00000/run.json": '{"paths": [{"path": "state.db"}]}',
}


@pytest.mark.parametrize("trace", TRACES)
def test_traces_of_use(home: Path, trace: str) -> None:
    """Each trace of a used bot makes a missing history critical."""
    support.put(home / trace, TRACES[trace])

    [finding] = gone(home)

    assert (finding.code, finding.severity) == ("DB-GONE", Severity.CRITICAL)
    assert finding.fix == "start-empty"
    assert "No copy was found" in finding.detail
    assert "backup, if you have one" not in finding.next


NOT_USED = {
    "logs/gateway.log": "2026-11-15 00:35:09,004 INFO hermes_cli: setup finished\n",
    "gateway_state.json": '{"pid": 1, "gateway_state": "startup_failed"}',
    "sessions/sessions.json": "{}\n",
    "kanban/.dispatcher.lock": "",
}


@pytest.mark.parametrize("trace", NOT_USED)
def test_a_home_that_was_only_set_up(home: Path, trace: str) -> None:
    """What `hermes setup` and a failed start leave does not show that there was a history."""
    support.put(home / trace, NOT_USED[trace])

    assert gone(home) == []


RENAMED = (
    "state.db.bak", "state.db.old", "state.db.1", "state.db~", "state (copy).db", "state.db.broken",
    "old/state.db", "my-state-2026.sqlite",
)  # fmt: skip


@pytest.mark.parametrize("name", RENAMED)
def test_a_renamed_history(home: Path, name: str) -> None:
    """Whatever name or folder a person gave it, it is found, and its messages are counted."""
    (home / name).parent.mkdir(exist_ok=True)
    shutil.copy(home / "state.db", home / name)

    [finding] = gone(home)

    assert (finding.severity, finding.fix) == (Severity.CRITICAL, "restore-database")
    assert finding.evidence[0].where == name
    assert "50 messages" in finding.evidence[0].what


def test_a_copy_outside_of_the_home(home: Path) -> None:
    """It may be of another home: it is offered, but it does not show that this home was used."""
    shutil.copy(home / "state.db", home.parent / "state.db.bak")
    assert gone(home) == []
    support.put(home / "sessions" / "one.jsonl", "{}\n")

    _, [finding] = ask("database-gone", home)

    assert finding.fix == "restore-database"
    assert "perhaps of another home" in finding.evidence[0].what


def test_the_copy_with_the_newest_messages_is_first(home: Path) -> None:
    """Not the file that was touched last."""
    for name, time in (("state.db.old", 1_000), ("state.db.bak", 2_000)):
        shutil.copy(home / "state.db", home / name)
        damage.execute(home / name, f"UPDATE messages SET timestamp = {time}")
    os.utime(home / "state.db.bak", (1_600_000_000, 1_600_000_000))

    [finding] = gone(home)

    assert [one.where for one in finding.evidence[:2]] == ["state.db.bak", "state.db.old"]


@pytest.mark.parametrize("time", ["1763480000000", "1e18", "9e999", "4000000000"])
def test_an_impossible_time_in_a_copy(home: Path, time: str) -> None:
    """One message with a time after that of the file neither stops the check nor ranks first."""
    for name in ("state.db.bak", "state.db.old"):
        shutil.copy(home / "state.db", home / name)
    damage.execute(home / "state.db.old", "UPDATE messages SET timestamp = 1700000000")
    damage.execute(home / "state.db.bak", f"UPDATE messages SET timestamp = {time}")
    os.utime(home / "state.db.bak", (1_600_000_000, 1_600_000_000))

    [finding] = gone(home)

    assert [one.where for one in finding.evidence[:2]] == ["state.db.old", "state.db.bak"]
    assert finding.evidence[1].what == "copy with 50 messages"


@pytest.mark.parametrize("kind", ["text", "empty"])
def test_what_is_not_a_copy(home: Path, kind: str) -> None:
    """A text with the name of a copy, or a database without any message."""
    if kind == "text":
        support.put(home / "state.db.bak", "not a database\n" * 900)
    else:
        support.made("state.db", home / "state.db.bak").close()
    support.put(home / "sessions" / "one.jsonl", "{}\n")

    [finding] = gone(home)

    assert finding.fix == "start-empty"


@pytest.mark.parametrize("trace", ["kanban/workspaces/t1/a", "kanban/attachments/t1/a"])
def test_traces_of_a_board(home: Path, trace: str) -> None:
    """A board whose tasks had files is missed; one that was never used is not."""
    (home / "kanban.db").unlink()
    assert ask("database-gone", home)[1] == []
    support.put(home / trace, "x")

    _, [finding] = ask("database-gone", home)

    assert (finding.subject, finding.severity) == ("kanban.db", Severity.ERROR)
    assert finding.fix == "start-empty"


def test_the_board(home: Path) -> None:
    """Other databases that hold something are missed too, caches are not."""
    for name in ("kanban.db", "response_store.db"):
        copy = home / "state-snapshots" / "2026" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(home / "kanban.db", copy)
    (home / "kanban.db").unlink()

    _, [finding] = ask("database-gone", home)

    assert (finding.subject, finding.severity) == ("kanban.db", Severity.ERROR)


def test_still_open_somewhere(home: Path) -> None:
    """What a process has open is the best copy: it is saved, and nothing older takes its place."""
    copy = home / "state-snapshots" / "2026" / "state.db"
    copy.parent.mkdir(parents=True)
    shutil.copy(home / "state.db", copy)
    held = os.open(home / "state.db", os.O_RDONLY)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.read(os.pipe()[0], 1)  # for ever
        os._exit(0)
    os.close(held)
    try:
        [finding] = gone(home)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)

    assert finding.fix == "save-deleted-log"
    assert finding.evidence[0].where.startswith(f"/proc/{child}/")
    assert "PID" not in finding.next + finding.detail
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (50,)
