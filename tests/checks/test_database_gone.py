"""DB-GONE: a database that was there, by what is left of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.model import Finding, Severity, Status
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


def test_sessions(home: Path) -> None:
    """Files of sessions say that there was a history; nothing can bring it back here."""
    support.put(home / "sessions" / "one.jsonl", "{}\n")

    [finding] = gone(home)

    assert (finding.code, finding.fix) == ("DB-GONE", None)


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
    """What a process still has open is the best copy: nothing older takes its place."""
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

    assert finding.fix is None
    assert any(one.where.startswith(f"/proc/{child}/") for one in finding.evidence)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT count(*) FROM messages").fetchone() == (50,)
