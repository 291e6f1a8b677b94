"""A deleted write-ahead log is saved before anything stops, and its rows are brought back."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk, open_files
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.repair.planning import deleted_logs, lost_rows
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.sqlite import deleted_log
from tests.helpers import crash_server, damage
from tests.helpers.real.gateways import end
from tests.scenarios.test_steps import Child, apply, item

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")

HOLDER = """
import os, signal, sqlite3, subprocess, sys, time
path, how = sys.argv[1:3]
db = sqlite3.connect(path, isolation_level=None, timeout=5)
db.execute("PRAGMA journal_mode=WAL")
number = 0

def write(count):
    global number
    for _ in range(count):
        number += 1
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('s1', 'user', ?, 1)",
            (f"late {number} " * 8,),
        )

OTHER = '''
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "damage":
    db.execute("DELETE FROM messages WHERE id % 3 = 0")
    db.execute("VACUUM")
else:
    columns = "(session_id, role, content, timestamp)"
    insert = f"INSERT INTO messages {columns} VALUES ('s2', 'user', ?, 1)"
    for n in range(5):
        db.execute(insert, (f"another {n}",))
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
db.close()
'''

def ended(*_):
    if how == "killed":
        os._exit(1)
    if how == "late":
        write(7)
    if how == "late-killed":
        write(7)
        os._exit(1)
    if how == "again":
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        write(4)
        os._exit(1)
    if how in ("damage", "other"):
        subprocess.run([sys.executable, "-c", OTHER, path, how], check=True)
    if how == "other":
        os._exit(1)
    db.close()
    if how == "twice":
        second.close()
    sys.exit(0)

signal.signal(signal.SIGTERM, ended)
write(20)
print("open", flush=True)
sys.stdin.readline()
write(30)
if how == "twice":
    second = sqlite3.connect(path, isolation_level=None)
    try:
        second.execute("SELECT count(*) FROM messages").fetchall()
    except sqlite3.OperationalError:
        pass
print("written", number, flush=True)
while True:
    if how == "busy":
        write(1)
    time.sleep(0.001 if how == "busy" else 0.05)
"""
"""Holds a database whose log is deleted, writes on, and ends in one of several ways."""


@dataclass
class Holder(Child):
    """A gateway that holds a deleted log; when it is started again it is an idle process."""

    order: list[str] = field(default_factory=list)


@contextmanager
def holding(path: Path, how: str, gone: Sequence[str] = ("-wal", "-shm")) -> Iterator[Holder]:
    """A process that has written 20 rows before its log was deleted and 30 since."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    service = Holder(path.parent / ".env", process)
    try:
        assert process.stdout.readline() == b"open\n"
        for suffix in gone:
            path.with_name(path.name + suffix).unlink()
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"written 50\n"
        yield service
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)
        if service.process is not None:
            end(service.process)


def run(home: Path, service: Child) -> Journal:
    """A run that restarts it."""
    pid = service.running()
    first = deleted_logs.save_deleted_logs(Probes(Home(home)), pid)
    assert first is not None
    return apply(home, item(first, GatewayStep(service, restart=True, why="a test")))


def late(path: Path) -> int:
    """How many rows of the holder are in a sound file."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        [(count,)] = db.execute("SELECT count(*) FROM messages WHERE content LIKE 'late%'")
        return int(count)


@pytest.fixture
def path(home: Path) -> Path:
    """A sound history."""
    return damage.history(home / "state.db")


@pytest.mark.parametrize("how", ["order", "killed", "twice", "damage"])
def test_no_row_is_lost(home: Path, path: Path, how: str) -> None:
    """However the process ends, the file holds all that was committed; a damaged one is kept.

    "twice" is an orderly end of a process that had opened the database again: SQLite drops the
    deleted log. "damage" writes the log over a file that another process has rebuilt meanwhile.
    """
    with holding(path, how) as service:
        done = run(home, service)

        assert done.state == "done", done.note
        assert late(path) == 50
        assert service.log[0].startswith("stop") and service.log[-1].startswith("start")
    [saved] = done.saved
    backup = Vault(Home(home)).load(saved)
    assert Vault(Home(home)).verify(backup) == []
    assert [one.path for one in backup.entries] == ["state.db", "state.db-wal", "state.db-shm"]
    notes = " ".join(done.items[0].notes)
    assert saved in notes
    assert ("lacked 50 rows of messages" in notes) == (how in ("killed", "twice"))
    assert ("was damaged" in notes) == (how == "damage")
    assert crash_server.leftovers(home) == []


def test_the_saved_pair_is_whole(home: Path, path: Path, tmp_path: Path) -> None:
    """Somebody who opens the saved files without this tool finds every row."""
    with holding(path, "killed") as service:
        done = run(home, service)
    folder = Vault(Home(home)).load(done.saved[0]).folder / "files"
    for suffix in ("", "-wal"):
        shutil.copy(folder / f"state.db{suffix}", tmp_path / f"out.db{suffix}")
    assert late(tmp_path / "out.db") == 50


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["late", "late-killed", "busy"])
def test_rows_written_after_the_copy(home: Path, path: Path, how: str) -> None:
    """What the process writes until it has stopped is in the file as well."""
    with holding(path, how) as service:
        done = run(home, service)
        assert done.state == "done", done.note
    assert late(path) >= (50 if how == "busy" else 57)


def test_a_log_that_was_started_again(home: Path, path: Path) -> None:
    """After a checkpoint the log starts from its beginning; its last rows are not lost either."""
    with holding(path, "again") as service:
        done = run(home, service)
        assert done.state == "done", done.note
    assert late(path) == 54


def test_rows_of_two_processes(home: Path, path: Path) -> None:
    """Rows that another process wrote stay: what is missing is named, and where it is kept."""
    with holding(path, "other") as service:
        done = run(home, service)

        assert done.items[0].outcome == "refused"
        reason = done.items[0].reason or ""
        assert "lacks 50 rows of messages" in reason and done.saved[0] in reason
        assert service.log[-1].startswith("start"), "the gateway is up again"
    assert late(path) == 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        [(count,)] = db.execute("SELECT count(*) FROM messages WHERE content LIKE 'another%'")
    assert count == 5


REASONS = {
    "full": "Could not save the deleted write-ahead log (-wal) of state.db: "
    "no space left on device.",
    "forbidden": "Could not read state.db of process {pid}: permission denied.",
    "closed": "The process with the deleted file has stopped. Run the check again.",
}


@pytest.mark.parametrize("why", REASONS)
def test_nothing_is_stopped(
    home: Path, path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """Where the log cannot be saved, the run ends before it stops anything."""
    with holding(path, "order") as service:
        pid = service.running()
        first = deleted_logs.save_deleted_logs(Probes(Home(home)), pid)
        assert first is not None
        if why == "full":
            monkeypatch.setattr(deleted_log, "disk", Failing(disk, "write", errno.ENOSPC))
        elif why == "forbidden":
            monkeypatch.setattr(open_files, "os", Failing(os, "open", errno.EACCES))
        else:
            monkeypatch.setattr(deleted_logs, "find", lambda probes: ())
        done = apply(home, item(first, GatewayStep(service, restart=True, why="a test")))
        monkeypatch.undo()

        assert (done.state, done.saved) == ("abandoned", [])
        assert done.items[0].outcome == "refused"
        assert done.items[0].reason == REASONS[why].format(pid=pid)
        assert service.running() == pid and service.log == []
        assert [name for name in os.listdir(home / "backups" / "doctor") if name != "runs"] == []


def open_here() -> list[str]:
    """What this process has open."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return found


def test_no_descriptor_is_left(home: Path, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where saving fails, the deleted log is closed: it takes up disk space while it is open."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr("hermes_doctor.sqlite.deleted_log.copy", full)
    with holding(path, "order") as service:
        done = run(home, service)
        assert "no space left" in (done.items[0].reason or "")
        assert service.log == []
        assert [one for one in open_here() if "state.db" in one] == []


def test_the_vault_of_the_run(home: Path, path: Path, tmp_path: Path) -> None:
    """Copies for the comparison lie in the vault that was chosen, marked with the home."""
    vault = Vault(Home(home), tmp_path / "elsewhere")
    step = deleted_logs.SaveDeletedLogs(Home(home), ("state.db",), (1,), 1)
    step.files.vault = vault
    disk.make_folder(vault.root)
    room = lost_rows.scratch_folder(step.files)
    assert room.parent == vault.root and vault.began(room.name)
    step.release()
    assert os.listdir(vault.root) == []


class Failing:
    """A module as another module sees it, with one function that fails."""

    def __init__(self, module: ModuleType, name: str, number: int) -> None:
        self.module, self.name, self.number = module, name, number

    def __getattr__(self, name: str) -> Any:
        return self.fail if name == self.name else getattr(self.module, name)

    def fail(self, *_: Any, **__: Any) -> NoReturn:
        """Raise the error."""
        raise OSError(self.number, os.strerror(self.number))


def test_another_process_has_it_open(home: Path, path: Path) -> None:
    """Every holder is saved, and nothing is stopped while another process has it open."""
    with holding(path, "order") as service, contextlib.closing(subprocess_on(path)) as other:
        before = hashlib.sha256(path.read_bytes()).hexdigest()
        done = run(home, service)

        assert done.items[0].outcome == "refused"
        assert f"process {other.pid}" in (done.items[0].reason or "")
        assert len(done.saved) >= 1 and service.log == []
        assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@dataclass
class Other:
    """A process that has the database file open."""

    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Its id."""
        return self.process.pid

    def close(self) -> None:
        """End it."""
        end(self.process)


def subprocess_on(path: Path) -> Other:
    """Open the file itself only, as a dashboard that is between two transactions would."""
    code = "import sys, time; f = open(sys.argv[1]); print('open', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"open\n"
    process.stdout.close()
    return Other(process)


def test_an_update_does_not_stop_it(home: Path, path: Path) -> None:
    """A command that stops the gateway without a run refuses."""
    refused = pytest.raises(CannotFix, match=r"\(-wal\) of state\.db.*fix --apply")
    with holding(path, "order"), refused:
        deleted_logs.refuse_deleted_logs(Home(home))
    deleted_logs.refuse_deleted_logs(Home(home))


def test_killed_between(home: Path, path: Path) -> None:
    """The copy is in the vault before the gateway hears of anything."""

    class Watched(Holder):
        def stop(self, limit: float) -> None:
            vault = Vault(Home(home))
            [saved] = vault.ids()
            assert vault.verify(vault.load(saved)) == []
            self.order.append(saved)
            super().stop(limit)

    with holding(path, "order") as service:
        watched = Watched(service.reads, service.process)
        done = run(home, watched)
        service.process = watched.process
        assert done.state == "done" and watched.order == done.saved


def test_a_big_log_is_read_while_it_is_written(home: Path, path: Path, tmp_path: Path) -> None:
    """Copies that are made while the process writes and checkpoints are each of one moment."""
    with holding(path, "busy") as service:
        [pair] = deleted_logs.find(Probes(Home(home)))
        fds = {s: os.open(f"/proc/{f.pid}/fd/{f.fd}", os.O_RDONLY) for s, f in pair.files}
        counts = []
        for n in range(10):
            target = tmp_path / f"{n}.db"
            deleted_log.copy(fds[""], fds["-wal"], fds["-shm"], target)
            target.with_name(f"{n}.db-shm").unlink()
            counts.append(late(target))
            time.sleep(0.02)
        for fd in fds.values():
            os.close(fd)
        assert service.running()
    assert counts == sorted(counts) and counts[0] >= 50 and counts[-1] > counts[0]
