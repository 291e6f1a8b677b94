"""Processes that hold what is no longer there, or a lock that they do not let go."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from tests.helpers import damage
from tests.helpers.one_check import ask, codes

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")

_PROCESS = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
db.execute("PRAGMA journal_mode=WAL")
insert = "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('s1', 'user', 'x', 1)"
db.execute(insert)
if sys.argv[2] in ("lock", "job"):
    db.execute("BEGIN IMMEDIATE")
    db.execute(insert)
print("ready", flush=True)
if sys.argv[2] == "busy":
    while True:
        db.execute("BEGIN IMMEDIATE")
        for _ in range(20):
            db.execute(insert)
        db.execute("COMMIT")
while sys.argv[2] == "job":
    pass
sys.stdin.read()
"""


@contextlib.contextmanager
def process(path: Path, what: str = "open") -> Iterator[subprocess.Popen[str]]:
    """A process that has the database open, holds its lock, or writes all the while."""
    started = subprocess.Popen(
        [sys.executable, "-c", _PROCESS, str(path), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
    finally:
        started.kill()
        started.communicate()


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return damage.history(home / "state.db")


def test_healthy(home: Path, path: Path) -> None:
    """A process that has the database open in order is no fault."""
    with process(path):
        result, findings = ask("database-holders", home)
        assert (result.status, findings) == (Status.OK, [])
        assert codes(home) == codes(home, deep=True) == []


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_deleted_log(home: Path, path: Path, suffix: str) -> None:
    """A process goes on writing into a log, or by an index, that was deleted."""
    with process(path) as started:
        Path(f"{path}{suffix}").unlink()

        _, [finding] = ask("database-holders", home)

        assert (finding.code, finding.severity) == ("DB-DELETED-WAL", Severity.CRITICAL)
        assert finding.data["pid"] == started.pid
        copied = Path(f"/proc/{started.pid}/fd/{finding.data['fd']}").read_bytes()
        assert copied, "the finding leads to what is left"


@pytest.mark.parametrize("how", ["deleted", "replaced", "renamed"])
def test_replaced(home: Path, path: Path, how: str) -> None:
    """A process goes on with a file that is no longer the database; that is told once."""
    copy = shutil.copy(path, home / "copy")
    with process(path) as started:
        if how == "renamed":
            path.rename(home / "state.db.old")
            shutil.move(copy, path)
        elif how == "replaced":
            os.replace(copy, path)
        else:
            path.unlink()
            path.touch()
        for suffix in ("-wal", "-shm"):
            Path(f"{path}{suffix}").unlink()

        _, findings = ask("database-holders", home)

        assert [f.code for f in findings if f.code == "DB-REPLACED"] == ["DB-REPLACED"]
        assert not [f for f in findings if f.code == "DB-DELETED-WAL"]
        assert findings[0].data["pid"] == started.pid


def test_locked_by_a_stopped_process(home: Path, path: Path) -> None:
    """A process that is halted in the middle of a transaction never lets go."""
    with process(path, "lock") as started:
        started.send_signal(signal.SIGSTOP)
        _, [finding] = ask("database-holders", home)

        assert (finding.code, finding.severity) == ("DB-LOCKED", Severity.ERROR)
        assert finding.data == {"pid": started.pid, "stopped": True}


def test_locked_by_a_stranger(home: Path, path: Path) -> None:
    """A transaction that somebody left open, without writing anything."""
    with process(path, "lock") as started:
        _, [finding] = ask("database-holders", home)

        assert (finding.code, finding.severity) == ("DB-LOCKED", Severity.ERROR)
        assert finding.data == {"pid": started.pid, "stopped": False}


def test_a_busy_writer_is_no_fault(home: Path, path: Path) -> None:
    """A process that writes without a pause holds the lock most of the time, and gets on."""
    with process(path, "busy"):
        for _ in range(5):
            _, findings = ask("database-holders", home)
            assert [f for f in findings if f.severity != Severity.INFO] == []
            time.sleep(0.01)


def test_a_long_job_is_only_told(home: Path, path: Path) -> None:
    """A process that computes in the middle of its transaction will get done."""
    with process(path, "job") as started:
        _, [finding] = ask("database-holders", home)

        assert (finding.code, finding.severity) == ("DB-LOCKED", Severity.INFO)
        assert (finding.data["pid"], finding.fix) == (started.pid, None)


def test_no_database(home: Path) -> None:
    """Without databases the question does not apply."""
    for file in home.glob("*.db"):
        file.unlink()

    assert ask("database-holders", home)[0].status is Status.SKIPPED
