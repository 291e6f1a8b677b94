"""A snapshot restored beside the log of a killed Hermes, with and without a gateway on it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.conftest import RELEASES
from tests.helpers.real.controlled_gateways import VERSION, ward
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import real_home

pytestmark = pytest.mark.real

KILLED = """
import os, signal
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
history.create_session("crashed", "cli", model="m")
for n in range(600):
    text = f"written before the crash, number {n} " * (n % 40 if n % 15 else 400)
    history.append_message("crashed", "tool" if n % 3 else "user", text)
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Writes far more than what its last log holds, and is killed."""

KEPT = """
import os
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path(os.environ["HERMES_HOME"]) / "state.db")
print(len(history.get_messages("one")), len(history.get_messages("crashed")))
history.append_message("one", "user", "written afterwards")
print(len(history.search_messages("afterwards")))
history.close()
"""


def crashed(version: str, home: Path) -> tuple[Path, dict[int, str]]:
    """A home whose state.db was restored beside the log, and all that the killed process wrote."""
    snapshot = shutil.copy(home / "state.db", home.parent / "snapshot.db")
    with contextlib.suppress(RuntimeError):
        real_home.run(version, home, KILLED)
    truth = home.parent / "truth.db"
    for suffix in ("", "-wal"):
        shutil.copy(home / f"state.db{suffix}", f"{truth}{suffix}")
    with contextlib.closing(sqlite3.connect(truth)) as db:
        wrote = dict(db.execute("SELECT id, content FROM messages").fetchall())
    shutil.copyfile(snapshot, home / "state.db")
    return home / "state.db", wrote


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def messages(path: Path) -> dict[int, str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return dict(db.execute("SELECT id, content FROM messages").fetchall())


@pytest.mark.parametrize("version", RELEASES)
def test_set_aside_and_added(version: str, hermes_home: MakeHome) -> None:
    """Nothing of the snapshot is lost, and what comes in from the log is what was written."""
    patient = Patient(version, hermes_home(version))
    path, wrote = crashed(version, patient.home)
    before = digest(path)

    found = patient.check("--only", "databases").json["findings"]
    assert [one["code"] for one in found] == ["DB-WAL-STALE"]
    done = patient.doctor("fix", "DB-WAL-STALE", "--apply", "--yes")

    assert done.code == 0, done.out
    assert "lost" not in done.out
    assert digest(path) == before
    added = patient.doctor("fix", "DB-WAL-ROWS", "--apply", "--yes")
    assert added.code == 0, added.out
    now = messages(path)
    assert set(now.items()) <= set(wrote.items())
    assert max(now) == max(wrote)
    said = patient.ask(KEPT).split()
    assert int(said[0]) + int(said[1]) == len(now)
    assert said[2] == "1"
    assert patient.check("--only", "databases").json["findings"] == []


def test_under_a_running_gateway(hermes_home: MakeHome) -> None:
    """Stopping the gateway would bring the log into the database; it stays what it was."""
    home = hermes_home(VERSION)
    path, wrote = crashed(VERSION, home)
    snapshot = messages(home.parent / "snapshot.db")
    with ward(home) as one:
        found = one.check("--only", "databases")
        assert "DB-WAL-STALE" in found.codes, found.codes
        plan = one.doctor("fix", "DB-WAL-STALE").out
        assert "a stop of the gateway would write" in " ".join(plan.split())

        done = one.fix("DB-WAL-STALE")

        assert done.code == 0, done.out + done.err
        assert "DB-WAL-STALE" not in one.check("--only", "databases").codes
    now = messages(path)
    assert set(snapshot.items()) <= set(now.items())
    assert not set(now) & (set(wrote) - set(snapshot))
    assert [file for file in os.listdir(home) if file.startswith("state.db-wal.aside-")]
