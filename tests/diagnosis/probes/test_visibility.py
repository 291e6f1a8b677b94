"""A gateway that cannot be seen: hidden by /proc, around us, or in a container of its own."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import RungState, Status
from hermes_doctor.diagnosis.probes import visibility
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import process_stat, runtime_files
from hermes_doctor.sqlite import exclusive
from tests.diagnosis.examination.test_liveness import climb
from tests.helpers import fake_gateway, support
from tests.helpers.crash_server import STRANGER
from tests.helpers.database_writer import writing
from tests.helpers.one_check import ask
from tests.helpers.warm_server import ROOT

APART = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def need(*command: str) -> None:
    """Skip where the machine does not let us have namespaces."""
    able = os.geteuid() == 0 and shutil.which(command[0]) is not None
    if not able or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("namespaces of its own need root")


# -- around us -----------------------------------------------------------------------------


def from_a_container(home: Path) -> dict[str, Any]:
    """What `check` says in a pid namespace in which no other process shows."""
    command = [*APART, sys.executable, "-m", "hermes_doctor", "check", "--json", "--home"]
    done = subprocess.run(
        [*command, str(home)], cwd=ROOT, env=support.environ(None), capture_output=True
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def status(said: dict[str, Any], id: str) -> tuple[str, str]:
    """How one check ended, and why."""
    [found] = [one for one in said["checks"] if one["id"] == id]
    return found["status"], found["reason"] or ""


@pytest.mark.sampled
@pytest.mark.parametrize("history", ["without a log", "absent"])
def test_outside_of_our_container(home: Path, history: str) -> None:
    """It is not taken for dead while it lives, and not for alive when it is dead."""
    need(*APART)
    if history == "absent":
        (home / "state.db").unlink()
    else:
        with sqlite3.connect(home / "state.db") as db:
            db.execute("PRAGMA journal_mode=DELETE")
        db.close()
    with fake_gateway.gateway(home):
        before = support.tree(home)
        alive = from_a_container(home)
        assert support.tree(home) == before
    dead = from_a_container(home)

    for id in ("gateway-running", "gateway-lock"):
        assert status(alive, id)[0] == "unknown"
        assert "another container" in status(alive, id)[1]
    assert {rung["status"] for rung in alive["liveness"]["rungs"]} == {"unknown"}
    assert not [one for one in alive["findings"] if one["code"].startswith("GW-")]
    assert {"GW-DIED", "GW-DOWN"} <= {one["code"] for one in dead["findings"]}


def test_who_writes(tmp_path: Path) -> None:
    """Whoever has it open to write is noticed; readers are not, and asking is over at once."""
    path = support.put(tmp_path / "gateway.lock", "{}")
    assert exclusive.has_writer(tmp_path / "gone") is None
    assert exclusive.has_writer(path) is False
    with path.open():
        assert exclusive.has_writer(path) is False
    with path.open("a+"):
        assert exclusive.has_writer(path) is True
        path.open("a").close()
    assert exclusive.has_writer(path) is False
    with path.open("a+"):
        pass


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container, without the right to ask who writes."""
    monkeypatch.setattr(visibility, "_is_apart", lambda: True)
    monkeypatch.setattr(exclusive, "has_writer", lambda _: None)


@pytest.mark.usefixtures("apart")
def test_signs_of_life(home: Path) -> None:
    """What was written just now leaves a doubt, unless it was on its way out; older does not."""
    fake_gateway.ended(home)
    support.put(home / "logs" / "gateway.log", "a line\n")
    old = time.time() - 300
    for name in ("gateway_state.json", "logs/gateway.log"):
        os.utime(home / name, (old, old))
    assert Probes(Home(home)).gateway.runtime().unseen == ""

    os.utime(home / "logs" / "gateway.log")
    assert "logs/gateway.log was written just now" in Probes(Home(home)).gateway.runtime().unseen
    assert ask("gateway-running", home)[0].status is Status.UNKNOWN

    fake_gateway.note(home, fake_gateway.DEAD, datetime.now(UTC), "gateway.exit_clean")
    assert Probes(Home(home)).gateway.runtime().unseen == ""


@pytest.mark.parametrize("asked", [True, False])
def test_a_chat_beside_us(home: Path, monkeypatch: pytest.MonkeyPatch, asked: bool) -> None:
    """Another Hermes in our container is no gateway; who may not ask of the lock is in doubt."""
    fake_gateway.ended(home)
    for name in ("gateway_state.json", "gateway.lock"):
        os.utime(home / name, (0, 0))
    monkeypatch.setattr(visibility, "_is_apart", lambda: True)
    if not asked:
        monkeypatch.setattr(exclusive, "has_writer", lambda _: None)
    with writing(home / "state.db") as chat:
        chat.tell("SELECT 1 FROM sqlite_master")
        assert exclusive.process_using(home / "state.db")
        monkeypatch.setattr(os, "getpid", lambda: fake_gateway.DEAD)  # it is none of our own looks
        assert bool(Probes(Home(home)).gateway.runtime().unseen) is not asked


# -- hidden by /proc -----------------------------------------------------------------------

HIDING = 'mount -t proc -o hidepid=$1 proc /proc && shift && exec "$@"'
STRANGE = """
import importlib, json, os, pkgutil, sys
from pathlib import Path
import hermes_doctor, psutil
from tests.helpers.one_check import ask
from tests.diagnosis.examination.test_liveness import climb

for module in pkgutil.walk_packages(hermes_doctor.__path__, "hermes_doctor."):
    importlib.import_module(module.name)
home, user = Path(sys.argv[1]), int(sys.argv[2])
ask("gateway-running", home)
os.setgroups([])
os.setresgid(user, user, user)
os.setresuid(user, user, user)
said = {}
for id in ("gateway-running", "gateway-lock"):
    result, findings = ask(id, home)
    said[id] = [result.status, result.reason or "", [one.code for one in findings]]
said["rung"] = climb(home)["process"].hold
print(json.dumps(said))
"""
"""What somebody else finds out; all code is loaded before, since it may not be his to read."""


@pytest.fixture
def open_home() -> Iterator[Path]:
    """A home that everybody may read, in a place that everybody can get to."""
    with tempfile.TemporaryDirectory() as folder:
        home = support.healthy(Path(folder) / "home")
        for path in (Path(folder), home, *home.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        yield home


@pytest.mark.sampled
@pytest.mark.parametrize("option", ["1", "2"])
def test_hidden_processes(open_home: Path, option: str) -> None:
    """Where others' processes are hidden, theirs is not said to be gone; the dead one still is."""
    need("unshare", "--mount")

    def strange() -> dict[str, Any]:
        command = ["unshare", "--mount", "sh", "-c", HIDING, "sh", option]
        script = [sys.executable, "-c", STRANGE, str(open_home), str(STRANGER)]
        done = subprocess.run([*command, *script], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    with fake_gateway.gateway(open_home) as running:
        alive = strange()
        names = ("gateway.lock", "gateway.pid", "gateway_state.json")
        kept = {name: (open_home / name).read_bytes() for name in names}
        for name in names:
            (open_home / name).unlink()
        nameless = strange()
        for name, data in kept.items():
            support.put(open_home / name, data, 0o644)
    dead = strange()

    for id in ("gateway-running", "gateway-lock"):
        how, why, codes = alive[id]
        assert (how, codes) == ("unknown", [])
        assert f"process {running.pid} holds gateway.lock, and you may not see it" in why
        assert "hidepid" in why
    assert alive["rung"] == nameless["rung"] == RungState.UNKNOWN
    assert nameless["gateway-running"][0] == "unknown", "the diary still names it"
    assert f"process {running.pid} is named as the gateway" in nameless["gateway-running"][1]
    assert dead["gateway-running"][2] == ["GW-DIED", "GW-DOWN"]
    assert dead["gateway-lock"][2] == ["GW-STALE-PID"]


def test_what_is_hidden() -> None:
    """We ourselves are not, and neither is what is not there."""
    assert not visibility.is_hidden(os.getpid())
    assert not visibility.is_hidden(fake_gateway.DEAD)


# -- in a container ------------------------------------------------------------------------


def test_in_a_container(home: Path) -> None:
    """It writes down the number that it has in there; we know it by ours."""
    need(*APART)
    with fake_gateway.gateway(home, apart=APART, platforms={"api_server": "connected"}) as running:
        assert process_stat.pid_in_namespace(running.pid) == 1 != running.pid
        assert json.loads((home / "gateway.pid").read_text())["pid"] == 1
        probes = Probes(Home(home))
        found, pulse = probes.gateway.runtime(), probes.health.pulse()
        rungs = climb(home)
        checks = {id: ask(id, home) for id in ("gateway-running", "gateway-lock", "gateway-loop")}
        gateways = [gateway.pid for gateway in probes.gateway.running()]
        [life] = probes.gateway.diary()
        claims = probes.gateway.claims(probes.gateway.running()[0])

    owners = (found.pid_file, found.lock_file, found.state_owner, found.beat)
    assert {one.pid for one in owners if one} == {running.pid}
    assert None not in owners
    assert (gateways, found.lock_holder, found.unseen) == ([running.pid], running.pid, "")
    assert (pulse.running, pulse.pid) == (True, running.pid)
    assert pulse.age is not None
    assert (life.how, life.pid) == ("alive", running.pid)
    assert set(claims or ()) == {"api_server"}
    assert {rungs[name].hold for name in ("process", "lock", "event loop")} == {RungState.OK}
    assert {result.status for result, _ in checks.values()} == {Status.OK}


def test_a_number_of_another_container(home: Path) -> None:
    """Only the process that began then is meant."""
    need(*APART)
    with fake_gateway.gateway(home, apart=APART) as running:
        said = runtime_files.find(Home(home))
        assert said.pid_file is not None
        assert said.pid_file.start_time is not None
        other = said.pid_file._replace(start_time=said.pid_file.start_time - 100)
        found = runtime_files.with_our_pids(said._replace(pid_file=other), [running.pid])

    assert found.pid_file == other
    assert found.lock_file == other._replace(pid=running.pid, start_time=said.pid_file.start_time)


def test_here(home: Path) -> None:
    """Where nothing is apart, nothing is translated."""
    with fake_gateway.gateway(home) as running:
        said = runtime_files.find(Home(home))
        assert runtime_files.with_our_pids(said, [running.pid]) is said
