"""Whose a gateway is that descends from the main process of a unit: real processes, no systemd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.hermes.supervisors import find
from hermes_doctor.hermes.supervisors.starters import is_wrapper_of
from hermes_doctor.hermes.supervisors.units import SYSTEMD_USER, Unit
from hermes_doctor.repair.gateway.process_handle import open_process
from hermes_doctor.repair.gateway.service_managers import SystemdManager, SystemdUnit
from tests.helpers import support
from tests.helpers.fake_managers import STRAW, until
from tests.helpers.real.gateways import end

SPAWN = """
import os, subprocess, sys
if other := os.environ.pop("OTHER", ""):
    child = dict(os.environ, HERMES_HOME=other)
    subprocess.Popen([sys.executable, sys.argv[0], "gateway", "run"], env=child)
"""
NAME = "hermes-gateway.service"


def pid_of(home: Path) -> int:
    """The process that last said that it runs there."""
    try:
        return int(json.loads((home / "gateway_state.json").read_text())["pid"])
    except OSError:
        return 0


@contextmanager
def running(command: list[str], *homes: Path, **env: str) -> Iterator[list[int]]:
    """A main process, and the gateways of these homes under it."""
    main = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
    pids: list[int] = []
    try:
        until(lambda: all(map(pid_of, homes)))
        pids = [pid_of(home) for home in homes]
        yield [main.pid, *pids]
    finally:
        for pid in pids:
            if pid != main.pid:
                subprocess.run(["kill", "-KILL", str(pid)], check=False)
        end(main)


def owner(unit: Unit, pid: int, home: Path, monkeypatch: pytest.MonkeyPatch) -> Unit | None:
    """The owner of a gateway that lies in the group of this unit."""
    place = lineage.ControlGroup(unit.name, unit.manager)
    monkeypatch.setattr(find, "control_group_of", lambda pid: place)
    monkeypatch.setattr(find, "_units", lambda *_: [unit])
    monkeypatch.setattr(lineage, "_MARKS", ())
    return find._on_linux(Home(home), pid, [])[1]


def told(home: Path, main: int, *program: str, **environment: str) -> Unit:
    """A unit with that main process."""
    plain = Unit(SYSTEMD_USER, NAME, None, home, main, "active", {}, environment, None)
    return plain._replace(program=program)


class Fixed(SystemdManager):
    """A manager that knows one main process."""

    def __init__(self, main: int) -> None:
        super().__init__(None)
        self.main = main
        self.asked: list[tuple[str, ...]] = []

    def property_of(self, unit: str, name: str) -> str:
        return str(self.main)

    def run_checked(self, *words: str, limit: float = 30.0) -> None:
        self.asked.append(words)


def stopped(home: Path, main: int, pid: int) -> list[tuple[str, ...]]:
    """What the manager is asked for to stop that gateway."""
    manager = Fixed(main)
    with open_process(pid) as process:
        SystemdUnit(Home(home), NAME, manager).ask_to_stop(process)
    return manager.asked


def test_child_of_another_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent has started the gateway of another home: its own unit is not stopped for that."""
    one, two = (support.healthy(tmp_path / name).resolve() for name in ("one", "two"))
    hermes = support.put(tmp_path / "bin" / "hermes", SPAWN + STRAW, 0o755)
    command = [sys.executable, str(hermes), "gateway", "run"]
    with running(command, one, two, HERMES_HOME=str(one), OTHER=str(two)) as (main, first, child):
        assert main == first != child
        assert not is_wrapper_of(main, child, two)
        unit = told(one, main, *command, HERMES_HOME=str(one))
        assert owner(unit, child, two, monkeypatch) is None
        silent = unit._replace(pid=None)
        assert owner(silent, child, two, monkeypatch) is None
        assert owner(unit, main, one, monkeypatch) == unit
        with pytest.raises(CannotFix, match="does not belong to"):
            stopped(two, main, child)
        assert stopped(one, main, main) == [("stop", "--no-block", NAME)]


@pytest.mark.parametrize("name", [NAME, "bot.service"])
def test_wrapper(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit whose script starts the gateway and waits for it owns it; any other one does not."""
    home, other = (support.healthy(tmp_path / name).resolve() for name in ("one", "two"))
    hermes = support.put(tmp_path / "bin" / "hermes", STRAW, 0o755)
    script = support.put(
        tmp_path / "start.sh", f"#!/bin/sh\n{sys.executable} {hermes} gateway run\nexit $?\n", 0o755
    )
    with running([str(script)], home, HERMES_HOME=str(home)) as (main, pid):
        assert main != pid
        unit = told(home, main, str(script))._replace(name=name)
        assert owner(unit, pid, home, monkeypatch) == unit
        assert stopped(home, main, pid) == [("stop", "--no-block", NAME)]
        says = unit._replace(home=other, environment={"HERMES_HOME": str(other)})
        assert owner(says, pid, home, monkeypatch) is None
        desk = unit._replace(name="desk.service", program=("/usr/bin/desk",))
        assert owner(desk, pid, home, monkeypatch) is None
