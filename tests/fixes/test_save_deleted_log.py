"""A deleted log that a process other than the gateway holds is saved; nothing is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes_doctor.home import Home
from hermes_doctor.vault import Vault
from tests import crashing, damage, support
from tests.test_deletedlogs import holding, late

pytestmark = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs /proc")


def fix(home: Path) -> support.Done:
    """Apply it without a question."""
    options = ("--apply", "--yes", "--json", "--home", str(home))
    return support.doctor("fix", "DB-DELETED-WAL", *options)


def test_saved_and_not_stopped(home: Path, tmp_path: Path) -> None:
    """The copy is made each time, the home stays as it is, and the next step is named."""
    path = damage.history(home / "state.db")
    with holding(path, "killed") as service:
        before = crashing.state(home)
        for _ in range(2):
            done = fix(home)

            assert done.code == 1
            [run] = done.json["repair"]["runs"]
            [item] = run["items"]
            assert (item["fix"], item["outcome"]) == ("save-deleted-log", "refused")
            assert f"process {service.running()}" in item["reason"]
            assert run["saved"][0] in item["reason"] and "Stop that process" in item["reason"]
            assert service.log == [] and service.running()
            assert crashing.state(home) == before
    vault = Vault(Home(home))
    backup = vault.load(run["saved"][0])
    assert vault.verify(backup) == []
    assert late(path) == 0, "the process was killed, and its log is gone"
    done = support.doctor("backup", "restore", backup.id, "--yes", "--home", str(home))
    assert done.code == 0, done.out + done.err
    assert late(path) == 50, "the backup gives the rows back"


def test_healthy(home: Path) -> None:
    """A process with its log in place needs no fix."""
    path = damage.history(home / "state.db")
    with holding(path, "order", gone=()):
        done = fix(home)
        assert (done.code, done.json["repair"]["runs"]) == (0, [])
