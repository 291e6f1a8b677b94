"""A real gateway under a real systemd: given a service, restarted, limited, failed, taken back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.hermes.processes import process_stat
from tests.conftest import need_release
from tests.helpers import damage, support
from tests.helpers.fake_managers import STRAW
from tests.helpers.real.controlled_gateways import freeze, obeying
from tests.helpers.real.gateways import answers, end, free_port, sealed, until
from tests.helpers.real.systemd import Machine, systemd
from tools import releases

pytestmark = [pytest.mark.real, pytest.mark.wide]
NAME = "hermes-gateway.service"
STEADY = "8"
"""Seconds that a gateway must stay up after a crash loop: no longer than otherwise."""
LIMITED = """
[Unit]
StartLimitIntervalSec=1h
StartLimitBurst=2
[Service]
RestartSec=100ms
"""
FRAGILE = """
[Unit]
StartLimitIntervalSec=0
[Service]
RestartSec=1
ExecStartPre={python} {script}
"""
SOUND = """
import sqlite3
db = sqlite3.connect("file:{path}?mode=ro&immutable=1", uri=True)
assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
"""
"""What a unit may look at before it starts: with a damaged history it starts no gateway."""
FILL = """
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path.home() / ".hermes" / "state.db")
history.create_session("one", "cli", model="test-model")
for n in range(300):
    history.append_message("one", "user", f"message number {n}")
history.close()
"""
COUNT = """
from pathlib import Path
from hermes_state import SessionDB
history = SessionDB(Path.home() / ".hermes" / "state.db")
print(*[message["content"] for message in history.get_messages("one")], sep="\\n")
history.close()
"""


class Ward:
    """One home on that machine, and the doctor at work on it."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.machine = machine
        self.outside = folder / ".hermes"
        self.home = machine.user / ".hermes"
        self.bin = releases.python_of("0.19.0").parent
        self.env = {"PATH": f"{self.bin}:{os.environ['PATH']}", "HERMES_DOCTOR_STEADY": STEADY}

    def doctor(self, *args: str) -> support.Done:
        """Run it in there, with time enough for a restart on a busy machine."""
        command = ("env", "NO_COLOR=1", sys.executable, "-m", "hermes_doctor", *args)
        return self.machine.run(*command, "--home", self.home, env=self.env, uid=0, timeout=300)

    def fix(self, code: str) -> list[str]:
        """Carry out the fix of one code, which must hold; what the receipt notes."""
        done = self.doctor("fix", code, "--apply", "--yes", "--json")
        assert done.code == 0, done.out + done.err
        assert done.json["repair"]["runs"], [p["refusal"] for p in done.json["repair"]["plan"]]
        [run] = done.json["repair"]["runs"]
        [item] = run["items"]
        assert item["outcome"] == "verified", item
        again = self.doctor("fix", code, "--apply", "--yes", "--json")
        assert (again.code, again.json["repair"]["runs"]) == (0, []), "twice equals once"
        return [*item["steps"], *item["notes"]]

    def codes(self) -> list[str]:
        """What the doctor finds."""
        return self.doctor("check", "--json").codes

    def state(self) -> tuple[int, str]:
        """The process and the state that the gateway itself writes down."""
        try:
            told = json.loads((self.outside / "gateway_state.json").read_bytes())
        except (OSError, ValueError):
            return 0, ""
        return told["pid"], told["gateway_state"]

    def hermes(self, script: str) -> str:
        """What Hermes' own code says in there."""
        done = self.machine.run(self.bin / "python", "-c", script)
        assert done.code == 0, done.err
        return done.out

    def limit(self) -> str:
        """How many files the gateway may open, by the kernel's word."""
        text = (self.machine.root / f"proc/{self.machine.main_pid(NAME)}/limits").read_text()
        found = re.search(r"Max open files +(\d+)", text)
        assert found
        return found[1]


@contextmanager
def by_hand(ward: Ward) -> Iterator[int]:
    """A gateway that a person has started; its process there."""
    process = subprocess.Popen(
        ward.machine.command(ward.bin / "hermes", "gateway", "run"),
        env=ward.machine.environment | ward.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        old = ward.state()[0]
        until(lambda: ward.state()[1] == "running" and ward.state()[0] != old, "the gateway")
        yield ward.state()[0]
    finally:
        end(process)


@pytest.mark.long
def test_under_its_own_unit(tmp_path: Path) -> None:
    """From a process that nobody looks after to a service, and through what befalls one."""
    need_release("0.19.0")
    user = tmp_path / "user"
    with systemd(user, inside=Path("/run/home/alice")) as machine:
        machine.linger(True)
        machine.systemctl("set-environment", f"HERMES_DOCTOR_STEADY={STEADY}")  # for the watch
        ward = Ward(machine, user)
        support.put(ward.outside / "config.yaml", support.CONFIG)
        port = free_port()
        settings = sealed(port) | {"HERMES_GATEWAY_MAX_STARTS": "0"}  # it is started often here
        lines = [f"{name}={value}" for name, value in settings.items()]
        support.put(ward.outside / ".env", "\n".join(lines) + "\n")
        obeying(ward.outside)

        # A service of its own, and back, and again.
        with by_hand(ward) as first:
            said = ward.fix("GW-UNSUPERVISED")
        assert any("hermes gateway install" in line for line in said)
        second = machine.main_pid(NAME)
        assert second not in (0, first) and ward.state() == (second, "running")
        undone = ward.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert not (machine.units / NAME).exists()
        alone, word = ward.state()
        assert word == "running" and alone not in (first, second)
        machine.run("kill", str(alone), uid=0)
        ended = machine.root / f"proc/{alone}"
        until(lambda: not ended.exists(), "its end")
        with by_hand(ward):
            ward.fix("GW-UNSUPERVISED")

        # Restarted through its unit.
        second = machine.main_pid(NAME)
        (ward.outside / "gateway.lock").unlink()
        said = ward.fix("GW-LOCK-LOST")
        third = machine.main_pid(NAME)
        assert any(f"user service {NAME}" in line for line in said)
        assert third not in (0, second) and ward.state() == (third, "running")
        assert machine.show(NAME, "NRestarts") == "0", "stopped and started, not revived"

        # From outside of its container, where it has another number.
        outside = Probes(Home(ward.outside))
        [gateway] = outside.gateway.running()
        assert process_stat.pid_in_namespace(gateway.pid) == third != gateway.pid
        told = outside.gateway.runtime()
        assert told.state_owner and told.beat and told.lock_holder == gateway.pid
        assert {told.state_owner.pid, told.beat.pid, outside.health.pulse().pid} == {gateway.pid}
        assert outside.health.pulse().running and set(outside.gateway.claims(gateway) or ()) == {
            "api_server"
        }

        # Its loop frozen: without a heartbeat its unit is less patient than we are, and kills it.
        freeze(ward.outside, port)
        assert "GW-LOOP-BLOCKED" in ward.codes()
        said = ward.fix("GW-LOOP-BLOCKED")
        fourth = machine.main_pid(NAME)
        assert any(f"user service {NAME}" in line for line in said)
        assert fourth not in (0, third) and ward.state() == (fourth, "running")
        assert machine.show(NAME, "NRestarts") == "0" and answers(port)

        # More files, and back.
        before = ward.limit()
        ward.fix("GW-FD-LIMIT-LOW")
        drop_in = machine.units / f"{NAME}.d" / "hermes-doctor.conf"
        found = re.search(r"LimitNOFILE=(\d+)", drop_in.read_text())
        assert found and int(found[1]) > int(before)
        assert drop_in.stat().st_mode & 0o777 == 0o600
        assert ward.limit() == found[1]
        undone = ward.doctor("undo", "--yes")
        assert undone.code == 0, undone.out + undone.err
        assert not drop_in.parent.exists()
        assert ward.limit() == before

        # Stopped, and started; given up by systemd, and started.
        machine.systemctl("stop", NAME)
        ward.fix("GW-DOWN")
        assert machine.main_pid(NAME) == ward.state()[0]
        unit = (machine.units / NAME).read_text()
        machine.install(NAME, unit, few=LIMITED)  # Hermes would put the unit itself right again

        def given_up() -> bool:
            machine.run("kill", "-KILL", str(machine.main_pid(NAME) or 4194303), uid=0)
            return machine.show(NAME, "ActiveState") == "failed"

        until(given_up, "systemd to give up")
        ward.fix("GW-STARTLIMIT")
        last = machine.main_pid(NAME)
        assert last == ward.state()[0] != 0
        _watched(ward, given_up)

        # The full reset: a damaged history lets it start over and over.
        machine.systemctl("stop", NAME)
        ward.hermes(FILL)
        history = ward.outside / "state.db"
        damage.settle(history)
        damage.index_zeroed(history)
        damaged = history.read_bytes()
        support.put(user / "sound.py", SOUND.format(path=ward.home / "state.db"))
        python, script = ward.bin / "python", machine.user / "sound.py"
        machine.install(NAME, unit, few=FRAGILE.format(python=python, script=script))
        machine.systemctl("start", "--no-block", NAME)
        until(lambda: int(machine.show(NAME, "NRestarts")) >= 3, "the loop")
        said = ward.fix("GW-CRASH-LOOP")
        assert any("state.db" in line for line in said), said
        reset = machine.main_pid(NAME)
        assert reset not in (0, last) and ward.state() == (reset, "running") and answers(port)
        assert not {"DB-INDEX", "DB-MALFORMED", "GW-CRASH-LOOP"} & {*ward.codes()}
        rows = ward.hermes(COUNT).splitlines()
        assert rows == [f"message number {n}" for n in range(300)]
        machine.systemctl("stop", NAME)
        undone = ward.doctor("undo", "--yes", "--force")
        assert undone.code == 0, undone.out + undone.err
        assert history.read_bytes() == damaged


def _watched(ward: Ward, give_up: Callable[[], bool]) -> None:
    """The watch as a service of its own: it heals, starts nothing that was stopped, and goes."""
    machine = ward.machine
    before = sorted(machine.units.rglob("*"))

    def said() -> str:
        return machine.run("journalctl", "--identifier=hermes-doctor", "--output=cat").out

    done = ward.doctor("watch", "install", "--heal", "--interval", "1s", "--after", "2")
    assert done.code == 0 and "Installed and started" in done.out, done.out + done.err
    [unit] = {*machine.units.glob("*.service")} - {*before}
    again = ward.doctor("watch", "install", "--heal", "--interval", "1s", "--after", "2")
    assert "Already installed and running" in again.out
    until(lambda: "Last check: " in ward.doctor("watch", "status").out, "the first round")
    assert ward.doctor("watch", "status").code == 0
    assert "gateway running (process " in said(), "it sees the gateway from within its service"
    assert "GW-DUPLICATE" not in ward.codes()

    until(give_up, "systemd to give up")
    until(lambda: "healed GW-" in said(), "the watch to bring it back")
    until(lambda: machine.main_pid(NAME) == ward.state()[0] != 0, "the gateway")
    assert "healed: " in ward.doctor("watch", "status").out

    assert ward.doctor("watch", "remove").code == 0
    (machine.units / f"{NAME}.d" / "few.conf").unlink()
    machine.systemctl("daemon-reload")
    ward.doctor("watch", "install", "--heal", "--interval", "1s", "--after", "2")
    until(lambda: "Last check: " in ward.doctor("watch", "status").out, "its first round")
    machine.systemctl("stop", NAME)
    until(lambda: "the gateway was stopped on purpose" in said(), "its word")
    assert machine.main_pid(NAME) == 0

    assert ward.doctor("watch", "remove").code == 0
    assert not unit.exists() and ward.doctor("watch", "status").code == 1
    assert sorted(machine.units.rglob("*")) == [p for p in before if os.path.lexists(p)]
    kept = (machine.place or machine.user).glob(".local/state/hermes-doctor/*")
    assert [one.name for one in kept] == ["history.db"], "which the service wrote"


def test_for_another_user() -> None:
    """Root asks the manager of whom the home belongs to, and what it writes is that user's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        user = Path(folder) / "alice"
        with systemd(user, uid=12345) as machine:
            ward = Ward(machine, user)
            support.put(ward.outside / "config.yaml", support.CONFIG)
            hermes = support.put(user / "bin" / "hermes", STRAW, 0o755)
            program = f"/usr/bin/python3 {hermes} gateway run"  # alice cannot read the tests' own
            machine.units.mkdir(parents=True)
            for path in [*user.rglob("*")]:
                os.chown(path, 12345, 12345)
            lines = f'Environment="HERMES_HOME={ward.home}"\nRestart=always\n'
            lines += "Environment=QQ=connected\n"
            text = f"[Service]\nExecStart={program}\n{lines}[Install]\nWantedBy=default.target\n"
            machine.install(NAME, text)
            machine.systemctl("enable", NAME)

            ward.fix("GW-DOWN")
            pid = machine.main_pid(NAME)
            assert ward.state() == (pid, "running")
            assert (machine.root / f"proc/{pid}").stat().st_uid == 12345
            ward.fix("GW-FD-LIMIT-LOW")
            drop_in = machine.units / f"{NAME}.d" / "hermes-doctor.conf"
            assert {drop_in.stat().st_uid, drop_in.parent.stat().st_uid} == {12345}
            assert machine.main_pid(NAME) not in (0, pid)
            undone = ward.doctor("undo", "--yes")
            assert undone.code == 0, undone.out + undone.err
            assert not drop_in.parent.exists()
            machine.systemctl("stop", NAME)
