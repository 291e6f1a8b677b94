"""Acts that change no file of the home: done, taken back, cut off; and files outside the home."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.backup.records.home_lock import lock_home
from hermes_doctor.backup.records.journal import MachineActionRecord
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system.files import ABSENT
from hermes_doctor.repair.steps.database import SaveLost
from hermes_doctor.repair.steps.files import ReplaceFile
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.steps.machine import (
    EnableLinger,
    ReloadUnits,
    ResetFailed,
    action_from_record,
)
from hermes_doctor.repair.transaction.recovery import recover
from tests.helpers import crash_server, support
from tests.helpers.fake_managers import asked, command, on_path
from tests.helpers.real.gateways import end
from tests.scenarios.test_steps import Child, apply, cured, forked, ill, item, replaced, undo


@pytest.fixture
def managers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Managers that record what they are asked."""
    return on_path(tmp_path / "managers", monkeypatch)


def name() -> str:
    """Who we are."""
    import pwd

    return pwd.getpwuid(os.geteuid()).pw_name


def test_there_and_back(home: Path, managers: Path) -> None:
    """Done, taken back by undo, and done again by the undo of that; no file of the home moves."""
    before = crash_server.state(home)
    done = apply(home, item(EnableLinger(Home(home))))
    assert done.state == "done", done.note
    undone = undo(home, done)
    assert undone.state == "done", undone.note
    assert undo(home, undone).state == "done"
    verbs = ("enable", "disable", "enable")
    assert asked(managers) == [f"loginctl {verb}-linger {name()}" for verb in verbs]
    assert crash_server.state(home) == before


def test_not_cured(home: Path, managers: Path) -> None:
    """What did not help is taken back."""
    done = apply(home, item(EnableLinger(Home(home))), verify=ill)
    assert (done.state, done.items[0].outcome) == ("rolled-back", "rolled-back")
    assert asked(managers)[-1] == f"loginctl disable-linger {name()}"


def test_fails(home: Path, managers: Path) -> None:
    """Files that went with an act which fails are given back, and the reason is told."""
    command(managers, "loginctl", "echo access denied; exit 1")
    before = crash_server.state(home)
    done = apply(home, item(replaced(home / ".env", b"NEW=1\n"), EnableLinger(Home(home))))
    assert done.state == "rolled-back"
    assert "access denied" in (done.items[0].reason or "")
    assert crash_server.state(home) == before


def test_cut_off(home: Path, managers: Path) -> None:
    """Killed in the middle of it: the next command takes it back."""
    command(managers, "loginctl", 'case "$1" in enable*) kill -KILL $PPID;; esac')
    pid = forked()
    if not pid:
        with contextlib.suppress(BaseException):
            apply(home, item(replaced(home / ".env", b"NEW=1\n"), EnableLinger(Home(home))))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    command(managers, "loginctl")
    with lock_home(Home(home)):
        [ended] = recover(Home(home), ill)
    assert "rolled back" in ended.text
    assert asked(managers)[-1] == f"loginctl disable-linger {name()}"
    assert (home / ".env").read_text() == support.ENV


@pytest.mark.parametrize("verify", [cured, ill])
def test_drop_in(home: Path, managers: Path, tmp_path: Path, verify: object) -> None:
    """A file outside the home comes and goes with its folders, and systemd reads it each time."""
    folder = tmp_path / "user" / ".config" / "systemd"
    path = folder / "user" / "hermes-gateway.service.d" / "hermes-doctor.conf"
    steps = (ReplaceFile(path, b"[Service]\n", "a test", ABSENT), ReloadUnits(Home(home)))
    (tmp_path / "user").mkdir()
    done = apply(home, item(*steps), verify=verify)  # type: ignore[arg-type]
    if verify is cured:
        assert done.state == "done" and path.read_bytes() == b"[Service]\n"
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "LC_", "LANG"))}
        assert support.doctor("undo", "--yes", "--home", home, env=plain).code == 0
    else:
        assert done.state == "rolled-back"
    assert list((tmp_path / "user").iterdir()) == []
    assert asked(managers) == ["systemctl --user daemon-reload"] * 2


def test_forged() -> None:
    """A receipt cannot make anything else of an act."""
    home = Home(Path("/nowhere"))
    assert action_from_record(home, MachineActionRecord("rm", {})) is None
    assert (
        action_from_record(home, MachineActionRecord(ResetFailed.kind, {"unit": "sshd.service"}))
        is None
    )
    assert (
        action_from_record(home, MachineActionRecord("install-unit", {"unit": "../hermes.service"}))
        is None
    )
    twice = {"of": "take-back"}
    assert action_from_record(home, MachineActionRecord("take-back", twice)) is None


def test_no_name(home: Path, managers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is begun where it cannot be done."""

    def nobody(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    with pytest.raises(Trouble, match="has no account"):
        apply(home, item(replaced(home / ".env", b"NEW=1\n"), EnableLinger(Home(home))))
    assert asked(managers) == []


# -- the gateway ----------------------------------------------------------------------------------


def test_a_restart_that_does_not_help(home: Path) -> None:
    """It is done once, and said to be of no help; there is nothing to take back or to undo."""
    service = Child(home / ".env")
    service.start(5)
    service.log.clear()
    try:
        done = apply(
            home, item(GatewayStep(service, restart=True, why="a test"), name="ONE"), verify=ill
        )
        assert done.items[0].outcome == "failed"
        assert [word.partition(" ")[0] for word in service.log] == ["stop", "start"]
        with pytest.raises(Trouble, match="nothing to undo"):
            undo(home, done)
    finally:
        assert service.process is not None
        end(service.process)


HOLDER = """
import sqlite3, sys, time, signal
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA journal_mode=WAL")
db.execute("INSERT INTO t VALUES ('two')")
db.commit()
signal.signal(signal.SIGTERM, lambda *_: (db.close(), sys.exit(0)))
print("open", flush=True)
sys.stdin.readline()
db.execute("INSERT INTO t VALUES ('late')")
db.commit()
print("written", flush=True)
while True:
    time.sleep(0.1)
"""


def test_what_has_no_name_is_kept(home: Path) -> None:
    """Rows that a gateway wrote into a database which was replaced under it are not lost."""
    path = support.database(home / "live.db", "CREATE TABLE t (n)", "INSERT INTO t VALUES ('one')")
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == b"open\n"
        for file in home.glob("live.db*"):
            file.unlink()
        support.database(path, "CREATE TABLE t (n)")
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"written\n"
        opened = {
            os.readlink(entry): entry.name for entry in Path(f"/proc/{process.pid}/fd").iterdir()
        }
        fds = tuple((suffix, opened[f"{path}{suffix} (deleted)"]) for suffix in ("", "-wal"))
        service = Child(home / ".env", process)
        steps = (
            SaveLost(path, process.pid, fds, "a test"),
            GatewayStep(service, restart=True, why="a test"),
        )
        done = apply(home, item(*steps))
        assert done.state == "done", done.note
        assert service.process is not None
        end(service.process)
    finally:
        process.stdin.close()
        process.stdout.close()
        end(process)
    kept, _ = sorted(home.glob("live.db.lost-*"))
    with contextlib.closing(sqlite3.connect(kept)) as db:
        assert [row[0] for row in db.execute("SELECT n FROM t")] == ["one", "two", "late"]
