"""What a real systemd reads out of the unit that `watch install` writes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.operations.watch.store import WatchStateFiles
from hermes_doctor.repair.gateway.service_managers import SystemdManager
from hermes_doctor.repair.schedule import managers as schedule_systemd
from hermes_doctor.repair.schedule.jobs import Job
from tests.helpers import support
from tests.helpers.real.gateways import until
from tests.helpers.real.systemd import need_systemd, systemd

pytestmark = [pytest.mark.real, pytest.mark.wide]

ODD = 'a b"c%d$HOME$$e\\'
"""Blanks, quotes, specifiers, variables, and what would join two lines at the end of one."""
SAYS = """#!/bin/sh
printf '%s\\n' "$XDG_STATE_HOME" "$@" >{out}
exec sleep 1000
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A watch of a home with such a name, which only says how it was started."""
    home = tmp_path / ODD
    home.mkdir()
    out = tmp_path / "out"
    script = support.put(tmp_path / "says", SAYS.format(out=out), 0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state {ODD}"))
    monkeypatch.setattr(SystemdManager, "refuse", lambda _: None)
    store = WatchStateFiles(Home(home), tmp_path / f"state {ODD}" / "hermes-doctor")
    return Job(Home(home), ("--plugins", ODD), True, 30.0, store.folder, vault=home / ODD)


def system(monkeypatch: pytest.MonkeyPatch) -> schedule_systemd.Systemd:
    monkeypatch.setattr(os.path, "isdir", lambda _: True)
    return schedule_systemd.Systemd(system=True)


def test_every_word_is_what_it_was(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments, variables, folders and the description, read back by the manager itself."""
    need_systemd()
    user, machines = schedule_systemd.Systemd(system=False).text(job), system(monkeypatch).text(job)
    monkeypatch.undo()
    home, state = str(job.home.path), str(job.folder.parent)
    with systemd(tmp_path / "user") as machine:
        machine.install("w.service", user)
        machine.systemctl("start", "w.service")
        out = tmp_path / "out"
        until(lambda: out.exists() and out.read_text().endswith(f"{ODD}\n"), "its first words")
        said = out.read_text().splitlines()
        assert said[0] == state and said[-4:] == ["--home", home, "--plugins", ODD]
        assert machine.show("w.service", "Description") == (
            f"hermes-doctor watches {home} all the time"
        )
        machine.install("s.service", machines)
        told = re.sub(r"\\(.)", r"\1", machine.show("s.service", "ReadWritePaths"))
        assert told == f'"-{home}" "-{home}/{ODD}" -/etc/hermes-doctor'
        assert machine.show("s.service", "Description").endswith("all the time")


@pytest.mark.needs("systemd-analyze")
def test_systemd_finds_nothing_wrong(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both units."""
    texts = {"user": schedule_systemd.Systemd(system=False).text(job)}
    texts["system"] = system(monkeypatch).text(job)
    monkeypatch.undo()
    for kind, text in texts.items():
        unit = support.put(tmp_path / kind / f"{job.name}.service", text)
        done = subprocess.run(
            ["systemd-analyze", f"--{kind}", "verify", "--man=no", str(unit)],
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
        )
        mine = [line for line in done.stderr.splitlines() if job.name in line]
        assert mine == [], done.stderr
