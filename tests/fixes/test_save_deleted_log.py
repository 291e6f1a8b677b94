"""A deleted log that a process other than the gateway holds is saved; nothing is stopped."""

from __future__ import annotations

import contextlib
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from hermes_doctor.backup.vault.vault import Vault
from hermes_doctor.core.home import Home
from tests.helpers import crash_server, damage, support
from tests.helpers.fix_contract import ProvedBy
from tests.repair.planning.test_deleted_logs import holding, late

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")


def fix(home: Path) -> support.Done:
    """Apply it without a question."""
    options = ("--apply", "--yes", "--json", "--home", str(home))
    return support.doctor("fix", "DB-DELETED-WAL", *options)


def test_saved_and_not_stopped(home: Path, tmp_path: Path) -> None:
    """The copy is made each time, the home stays as it is, and the next step is named."""
    path = damage.history(home / "state.db")
    with holding(path, "killed") as service:
        before = crash_server.state(home)
        for _ in range(2):
            done = fix(home)

            assert done.code == 1
            [run] = done.json["repair"]["runs"]
            [item] = run["items"]
            assert (item["fix"], item["outcome"]) == ("save-deleted-log", "refused")
            assert f"process {service.running()}" in item["reason"]
            assert run["saved"][0] in item["reason"] and "Stop what still uses" in item["reason"]
            [command] = re.findall("`(.*)`", item["reason"])
            assert service.log == [] and service.running()
            assert crash_server.state(home) == before
    vault = Vault(Home(home))
    backup = vault.load(run["saved"][0])
    assert vault.verify(backup) == []
    assert late(path) == 0, "the process was killed, and its log is gone"
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO messages (session_id, role, content, timestamp)"
            " VALUES ('s9', 'user', 'new', 1)"
        )
    tool, *words = shlex.split(command)
    assert (tool, words[2]) == ("hermes-doctor", backup.id)
    asked = support.doctor(*words)
    assert asked.code == 2 and late(path) == 0, "without consent nothing is restored"
    done = support.doctor(*words, "--yes")
    assert done.code == 0, done.out + done.err
    said = " ".join(done.out.split())
    assert f"state.db lacks 50 messages that backup {backup.id} has" in said
    assert f"state.db has 1 message that backup {backup.id} lacks" in said
    assert late(path) == 50, "the command restores the rows"
    assert support.doctor("undo", "--yes", "--force", "--home", str(home)).code == 0
    with contextlib.closing(sqlite3.connect(path)) as db:
        [(count,)] = db.execute("SELECT count(*) FROM messages WHERE content = 'new'")
    assert count == 1, "the row that was written since is kept"


def test_an_orderly_end(home: Path) -> None:
    """Where the process took its rows into the file, the command says that none is missing."""
    path = damage.history(home / "state.db")
    with holding(path, "order") as service:
        [run] = fix(home).json["repair"]["runs"]
        service.stop(20)
    assert late(path) == 50
    done = support.doctor("backup", "restore", run["saved"][0], "state.db", "--home", str(home))
    said = " ".join((done.out + done.err).split())
    assert f"state.db has every message that backup {run['saved'][0]} has" in said
    assert done.code == 2 and late(path) == 50


def test_healthy(home: Path) -> None:
    """A process with its log in place needs no fix."""
    path = damage.history(home / "state.db")
    with holding(path, "order", gone=()):
        done = fix(home)
        assert (done.code, done.json["repair"]["runs"]) == (0, [])


PROVED_BY = ProvedBy(
    "fixes/test_save_deleted_log.py::test_saved_and_not_stopped",
    why="It needs a process that has a deleted file open, and leaves the home as it is.",
)
