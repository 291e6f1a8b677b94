"""Pid files and locks: what is only left over, what blocks a start, and what lets two run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes_doctor.core.model import Severity, Status
from tests.helpers import fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "gateway-lock"


def test_healthy(home: Path) -> None:
    """Nothing there, a lock file left by an orderly end, and a gateway that runs: all fine."""
    assert ask(CHECK, home)[1] == []
    fake_gateway.ended(home)
    assert ask(CHECK, home)[1] == []
    with fake_gateway.gateway(home):
        result, findings = ask(CHECK, home)
    assert (result.status, findings) == (Status.OK, [])


@pytest.mark.parametrize("owner", ["dead", "other"])
def test_left_over(home: Path, owner: str) -> None:
    """A pid file of a process that is gone, or whose number is ours by now: for information."""
    pid = fake_gateway.DEAD if owner == "dead" else os.getpid()
    support.put(home / "gateway.pid", json.dumps({"pid": pid, "start_time": 1}))

    [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.severity) == ("GW-STALE-PID", Severity.INFO)
    assert finding.fix == "clear-stale-lock"
    said = {"dead": "has ended", "other": "is now another program"}[owner]
    assert said in finding.evidence[0].what


def test_zombie(home: Path) -> None:
    """A zombie is reported with its parent."""
    with subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.DEVNULL) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        support.put(home / "gateway.pid", json.dumps({"pid": child.pid}))
        [finding] = ask(CHECK, home)[1]

    assert f"zombie of process {os.getpid()}" in finding.evidence[0].what


def test_held_by_another(home: Path) -> None:
    """A lock in the hands of something that is no gateway blocks every start."""
    support.put(home / "gateway.lock", "")
    with (home / "gateway.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.severity) == ("GW-STALE-PID", Severity.ERROR)
    assert finding.fix is None
    assert finding.data["pid"] == os.getpid()
    assert ask(CHECK, home)[1] == []


def test_held_by_an_heir(home: Path) -> None:
    """The lock outlives its taker in a child that got the descriptor."""
    code = (
        "import fcntl, os, sys\n"
        f"lock = open({str(home / 'gateway.lock')!r}, 'a')\n"
        "fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "if os.fork():\n"
        "    os._exit(0)\n"
        "print('up', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as taker:
        assert taker.stdout is not None
        assert taker.stdout.readline() == "up\n"
        os.waitpid(taker.pid, 0)
        [finding] = ask(CHECK, home)[1]
        taker.communicate()

    assert finding.title.startswith(f"a child of the ended process {taker.pid}")


def test_in_the_way(home: Path) -> None:
    """What a start can neither open nor remove."""
    (home / "gateway.lock").mkdir()

    [finding] = [one for one in ask(CHECK, home)[1] if one.severity is Severity.ERROR]

    assert (finding.subject, finding.fix) == ("gateway.lock", "clear-stale-lock")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file away")
def test_lock_of_root(home: Path) -> None:
    """The home is somebody's and its lock is root's: that somebody cannot open it."""
    support.put(home / "gateway.lock", "{}", mode=0o600)
    os.chown(home, 1234, 1234)

    [finding] = ask(CHECK, home)[1]

    assert finding.severity is Severity.ERROR
    assert "the gateway runs as 1234" in finding.evidence[0].what


def test_lock_lost(home: Path) -> None:
    """The file was deleted under the gateway."""
    with fake_gateway.gateway(home):
        (home / "gateway.lock").unlink()
        [finding] = ask(CHECK, home)[1]

    assert (finding.code, finding.fix) == ("GW-LOCK-LOST", "restart-gateway")


def test_two_of_them(home: Path, tmp_path: Path) -> None:
    """Two on one home are named both; one on a home beside it is none of them."""
    other = support.healthy(tmp_path / "other" / "home")
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(fake_gateway.gateway(home))
        stack.enter_context(fake_gateway.gateway(other))
        (home / "gateway.lock").unlink()
        second = stack.enter_context(fake_gateway.gateway(home))
        [finding] = ask(CHECK, home)[1]
        beside = ask(CHECK, other)[1]

    assert (finding.code, finding.severity) == ("GW-DUPLICATE", Severity.CRITICAL)
    assert set(finding.data["pids"]) == {first.pid, second.pid}
    assert finding.data["keep"] == second.pid
    assert beside == []


def test_odd_files_are_named(home: Path) -> None:
    """What is there and cannot be read is a doubt, not a crash."""
    os.mkfifo(home / "gateway_state.json")

    result, findings = ask(CHECK, home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "gateway_state.json" in (result.reason or "")
