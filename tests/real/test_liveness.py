"""Real gateways, healthy and not: each way to be dead or deaf has its name, and no other home's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import support
from tests.helpers.real.gateways import Running, clean_environment, end, gateway, until
from tests.helpers.real.release_homes import MakeHome, Patient
from tools import releases

pytestmark = pytest.mark.real
BOTH = ("0.13.0", "0.19.0")
"""The oldest release that runs, without heartbeat and API server, and the newest, with both."""
BY_HAND = "GW-UNSUPERVISED"
"""True of every gateway that a test starts."""

PUPPET = """
import asyncio, os, time
from pathlib import Path

folder = Path(os.environ["HERMES_HOME"]).parent
kept = []

def turn():
    if (folder / "block").exists():
        (folder / "block").read_bytes()  # a pipe: it stands still until somebody writes
    if (folder / "leak").exists():
        try:
            while True:
                kept.append(open(folder / "leak"))
        except OSError:
            pass
    elif kept:
        kept.clear()
    asyncio.get_running_loop().call_later(0.1, turn)

async def handle(event_type, context):
    asyncio.get_running_loop().call_later(0.1, turn)
"""
"""A hook that does on the event loop what a test wants: stand still, or open files without end."""


def strings(home: Path) -> Path:
    """Put the hook into a home; its strings hang beside it."""
    folder = home / "hooks" / "puppet"
    declared = "name: puppet\ndescription: for tests\nevents:\n  - gateway:startup\n"
    support.put(folder / "HOOK.yaml", declared)
    support.put(folder / "handler.py", PUPPET)
    return home.parent


def look(patient: Patient) -> support.Done:
    """`check --json`, with less patience for an API server that does not answer."""
    soon = {"hermes_doctor.diagnosis.probes.pulse.LONG": 1.0}
    return support.doctor(
        *("check", "--json", "--home", patient.home), env=patient.env, settings=soon
    )


def told(patient: Patient) -> dict[str, dict[str, Any]]:
    """The findings of warning or above by their code, with no check crashed."""
    done = look(patient)
    assert "crashed" not in {check["status"] for check in done.json["checks"]}, done.out
    loud = [one for one in done.json["findings"] if one["severity"] != "info"]
    return {one["code"]: one for one in loud if one["code"] != BY_HAND}


def rungs(patient: Patient) -> dict[str, str]:
    """The ladder: whether each rung holds."""
    return {one["name"]: one["status"] for one in look(patient).json["liveness"]["rungs"]}


def settled(running: Running) -> None:
    """Wait until a gateway has loaded all that it needs: only then may files get scarce."""
    log = running.home / "logs" / "gateway.log"
    until(lambda: b"Press Ctrl+C" in log.read_bytes(), "the end of the start")
    time.sleep(1)


@pytest.mark.parametrize("version", releases.ALL)
def test_healthy(version: str, hermes_home: MakeHome) -> None:
    """No finding of warning or above while it runs; killed, it is named as dead, and only it."""
    patient = Patient(version, hermes_home(version))
    beside = Patient(version, support.healthy(patient.home.parent / "beside"))
    with gateway(version, patient.home) as running:
        done = patient.check()
        loud = [one for one in done.json["findings"] if one["severity"] != "info"]
        assert [one for one in loud if one["code"] != BY_HAND] == []
        held = {one["name"]: one["status"] for one in done.json["liveness"]["rungs"]}
        assert [held[name] for name in ("process", "lock", "event loop")] == ["ok"] * 3
        assert {
            one["status"] for one in done.json["checks"] if one["id"].startswith("gateway-")
        } <= {
            "ok",
            "skipped",
        }
        running.process.kill()
        running.process.wait()

    found = told(patient)

    assert set(found) == {"GW-DIED", "GW-DOWN"}
    assert found["GW-DOWN"]["caused_by"] == "GW-DIED"
    since = datetime.fromisoformat(found["GW-DOWN"]["since"])
    assert datetime.now(UTC) - since < timedelta(minutes=5)
    assert told(beside) == {}


@pytest.mark.wide
@pytest.mark.parametrize("version", BOTH)
def test_ends(version: str, hermes_home: MakeHome) -> None:
    """Ctrl-C is a wish, SIGTERM of a stranger is none, and SIGUSR1 asks for a start in vain."""
    patient = Patient(version, hermes_home(version))
    found = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        with gateway(version, patient.home) as running:
            settled(running)
            running.process.send_signal(number)
            running.process.wait(30)
        found[number] = {code: one["severity"] for code, one in told(patient).items()}
        if number == signal.SIGINT:
            down = [f for f in patient.check().json["findings"] if f["code"] == "GW-DOWN"]
            assert [one["severity"] for one in down] == ["info"]

    assert found[signal.SIGINT] == {}
    assert found[signal.SIGTERM] == {"GW-DOWN": "error"}
    assert found[signal.SIGUSR1] == {"GW-CLEAN-EXIT-DEAD": "error", "GW-DOWN": "error"}


@pytest.mark.wide
@pytest.mark.parametrize("version", BOTH)
def test_alive_and_ill(version: str, hermes_home: MakeHome) -> None:
    """One gateway through all of it: stopped, blocked, starved, older than .env, without a lock."""
    patient = Patient(version, hermes_home(version))
    beside = Patient(version, support.healthy(patient.home.parent / "beside"))
    folder = strings(patient.home)
    with gateway(version, patient.home) as running:
        settled(running)
        assert told(patient) == {}

        with running.frozen():
            assert set(told(patient)) == {"GW-SUSPENDED"}
            assert told(beside) == {}

        with blocked(folder):
            assert set(told(patient)) == {"GW-LOOP-BLOCKED"}
            ladder = look(patient).json["liveness"]
            [loop] = [one for one in ladder["rungs"] if one["name"] == "event loop"]
            assert (loop["status"], ladder["stands_on"]) == ("failed", "lock")

        with starved(running, folder):
            found = told(patient)
            assert set(found) == {"GW-FD-EXHAUST"}
            assert found["GW-FD-EXHAUST"]["severity"] == "critical"
            assert "leak" in found["GW-FD-EXHAUST"]["evidence"][0]["what"]

        with (patient.home / ".env").open("a") as env:
            env.write("TELEGRAM_BOT_TOKEN=123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1\n")
        os.utime(patient.home / ".env", (time.time() + 120,) * 2)
        assert seen_now(patient) == {"GW-STALE-SETTINGS"}

        for name in ("gateway.lock", "gateway.pid"):
            (patient.home / name).unlink()
        assert seen_now(patient) == {"GW-STALE-SETTINGS", "GW-LOCK-LOST"}
        assert told(beside) == {}


def seen_now(patient: Patient) -> set[str]:
    """The codes without what the log says: a gateway that was starved for long wrote that down."""
    return {code for code, one in told(patient).items() if one["check"] != "log-rules"}


@contextmanager
def blocked(folder: Path) -> Iterator[None]:
    """The event loop stands still in a read of a pipe."""
    os.mkfifo(folder / "block")
    time.sleep(1)
    try:
        yield
    finally:
        with (folder / "block").open("wb"):
            (folder / "block").unlink()
        time.sleep(1)


@contextmanager
def starved(running: Running, folder: Path) -> Iterator[None]:
    """No descriptor is left to the gateway."""
    import resource

    before = resource.prlimit(running.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (128, before[1]))
    (folder / "leak").touch()
    until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) > 120, "the descriptors to go")
    try:
        yield
    finally:
        (folder / "leak").unlink()
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, before)
        until(lambda: len(os.listdir(f"/proc/{running.pid}/fd")) < 100, "the descriptors to return")


@pytest.mark.wide
def test_started_twice(hermes_home: MakeHome) -> None:
    """A second start that gives up changes nothing; one that finds no lock is named."""
    version = "0.13.0"
    patient = Patient(version, hermes_home(version))
    hermes = releases.python_of(version).parent / "hermes"
    with gateway(version, patient.home) as first:
        again = subprocess.run(
            [str(hermes), "gateway", "run"],
            env=clean_environment(patient.home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
        assert again.returncode == 1
        assert told(patient) == {}
        (patient.home / "gateway.lock").unlink()
        (patient.home / "gateway.pid").unlink()
        with gateway(version, patient.home) as second:
            found = told(patient)

    assert set(found) - {"DB-SQLITE-WALRESET"} == {"GW-DUPLICATE"}  # two writers are its case
    seen = {one["where"] for one in found["GW-DUPLICATE"]["evidence"]}
    assert seen == {f"process {first.pid}", f"process {second.pid}"}


def test_one_life(hermes_home: MakeHome) -> None:
    """Looked at, it writes no line; what an earlier life said is not its own; dead, it is dead."""
    patient = Patient("0.19.0", hermes_home("0.19.0"))
    with gateway("0.19.0", patient.home) as running:
        settled(running)
        leaves_no_line(patient)
        has_its_own_state(patient)
        running.process.kill()
        running.process.wait()
    is_not_taken_for_another(patient)


def leaves_no_line(patient: Patient) -> None:
    """Knocking at its API server leaves no line in any log of the gateway."""
    before = {path: path.read_bytes() for path in (patient.home / "logs").glob("*.log")}
    for _ in range(3):
        loop = patient.check().json["liveness"]["rungs"][3]
        assert "answered within" in loop["what"]
    after = {path: path.read_bytes() for path in (patient.home / "logs").glob("*.log")}
    new = b"".join(after[path][len(text) :] for path, text in before.items())
    assert b"aiohttp" not in new
    assert b"127.0.0.1" not in new
    assert b"Traceback" not in new


def has_its_own_state(patient: Patient) -> None:
    """What an earlier life said of a platform is no rung of this one."""
    path = patient.home / "gateway_state.json"
    own = path.read_bytes()
    state = json.loads(own)
    old = {"state": "fatal", "updated_at": "2026-01-01T00:00:00+00:00"}
    state["platforms"]["telegram"] = old
    support.put(path, json.dumps(state))
    assert rungs(patient)["platforms"] == "ok"
    support.put(path, own)


def is_not_taken_for_another(patient: Patient) -> None:
    """Processes that only speak of a gateway make none of a dead one."""
    wait = "import sys; sys.stdin.read()"
    commands = [
        ["bash", "-c", "read line # hermes gateway run"],
        [sys.executable, "-c", wait, "--user", "-u", "hermes-gateway", "-f"],
        [sys.executable, "-c", wait, "4711", "python", "-m", "hermes_cli.main", "gateway", "run"],
        ["bash", "-c", f"exec -a hermes {sys.executable} -c {wait!r}"],
    ]
    started = [
        subprocess.Popen(command, env=clean_environment(patient.home), stdin=subprocess.PIPE)
        for command in commands
    ]
    try:
        assert set(told(patient)) == {"GW-DIED", "GW-DOWN"}
        assert rungs(patient)["process"] == "failed"
    finally:
        for process in started:
            end(process)
            assert process.stdin is not None
            process.stdin.close()
