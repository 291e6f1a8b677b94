"""How a stopped gateway ended, from state/gateway.lifecycle.json."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Status
from tests.helpers import fake_gateway, recorded_homes, support
from tests.helpers.one_check import ask

ID = "gateway-last-life"
GONE = 2_971_215
AGO = (datetime.now(UTC) - timedelta(seconds=5)).isoformat()


def ledger(home: Path, **said: object) -> None:
    """A ledger as Hermes writes it."""
    support.put(home / "state/gateway.lifecycle.json", json.dumps({"pid": GONE, **said}))


@pytest.mark.parametrize(
    ("reason", "code", "severity"),
    [
        ("loop_liveness_watchdog", "GW-LOOP-BLOCKED", "error"),
        ("startup_liveness_watchdog", "GW-STARTUP-SLOW", "error"),
        ("shutdown_watchdog", "GW-DRAIN-HANG", "warning"),
    ],
)
def test_watchdogs(home: Path, reason: str, code: str, severity: str) -> None:
    """Each watchdog that ends a gateway leaves its name."""
    ledger(home, phase="exited", exit_code=75, exit_reason=reason, exited_at=AGO)

    _, [found] = ask(ID, home)

    assert (found.code, found.severity) == (code, severity)


@pytest.mark.parametrize(
    ("free", "code"),
    [(41_216, "GW-OOM"), (390_000, "GW-OOM"), (4_000_000, "GW-DIED"), (None, "GW-DIED")],
)
def test_died(home: Path, free: int | None, code: str) -> None:
    """It is listed as running, but its process is gone; its last heartbeat has the free memory."""
    ledger(home, phase="running", started_at=AGO)
    memory = {} if free is None else {"mem_available_kib": free, "mem_total_kib": 8_081_664}
    beat = {"pid": GONE, "updated_at": AGO, "mem": memory}
    support.put(home / "state/gateway.heartbeat", json.dumps(beat))

    _, [found] = ask(ID, home)

    assert (found.code, found.severity) == (code, "error")
    assert len(found.evidence) == 2


def test_in_order(home: Path) -> None:
    """An orderly end is nothing to report, nor is a home without a ledger."""
    assert ask(ID, home)[0].status is Status.SKIPPED
    ledger(home, phase="exited", exit_code=0, exit_reason="graceful_shutdown", exited_at=AGO)

    result, findings = ask(ID, home)

    assert (result.status, findings) == (Status.OK, [])


def test_running(home: Path) -> None:
    """The ledger of a running gateway is not judged."""
    with fake_gateway.gateway(home):
        ledger(home, phase="running", started_at=AGO)
        assert ask(ID, home)[0].status is Status.SKIPPED


@pytest.mark.parametrize(("low", "code"), [(True, "GW-OOM"), (False, "GW-DIED")])
def test_the_life_before(home: Path, low: bool, code: str) -> None:
    """A running gateway that found at its start that the one before it was killed."""
    more = {"prior_suspected_oom": True} if low else {}
    with fake_gateway.gateway(home):
        at = datetime.now(UTC)
        ledger(home, phase="running", started_at=at.isoformat(), prior_unclean_exit=True, **more)

        _, [found] = ask(ID, home)

        assert (found.code, found.severity, found.since) == (code, "warning", at)
        rewritten = {"phase": "running", "started_at": AGO, "prior_unclean_exit": True}
        earlier = (at - timedelta(days=2)).isoformat()
        for other in ({"started_at": earlier}, {"started_at": "x"}):
            ledger(home, **(rewritten | other))
            assert ask(ID, home)[1] == []


def test_the_life_before_in_log_and_ledger(home: Path) -> None:
    """The same problem from two sources is one finding."""
    with fake_gateway.gateway(home) as running:
        now = datetime.now(UTC)
        fake_gateway.note(home, running.pid, now, "gateway.previous_unclean_exit", prior_pid=GONE)
        ledger(home, phase="running", started_at=now.isoformat(), prior_unclean_exit=True)

        found = [one for one in support.check(home).json["findings"] if one["code"] == "GW-DIED"]

    assert len(found) == 1
    assert len(found[0]["evidence"]) == 2


@pytest.mark.parametrize("said", ["x", "[]", '{"phase": "running"}', '{"phase": 3, "pid": 1}'])
def test_odd(home: Path, said: str) -> None:
    """A ledger that cannot be read says nothing."""
    support.put(home / "state/gateway.lifecycle.json", said)

    assert ask(ID, home)[0].status is Status.SKIPPED


@pytest.mark.parametrize(("low", "code"), [(True, "GW-OOM"), (False, "GW-DIED")])
def test_the_exit_log_alone_tells_of_it(home: Path, low: bool, code: str) -> None:
    """The next start recorded the death, and its log lines are gone."""
    more = {"suspected_oom": True} if low else {}
    now = datetime.now(UTC)
    fake_gateway.note(home, 4343, now, "gateway.previous_unclean_exit", prior_pid=4242, **more)
    assert [one.code for one in ask("log-rules", home)[1]] == [code]


STARTUP = """
from gateway import lifecycle_ledger
assert lifecycle_ledger.record_startup()
"""


@pytest.mark.real
@pytest.mark.parametrize(("free", "code"), [(10_000, "GW-OOM"), (4_000_000, "GW-DIED")])
def test_recorded_by_a_real_release(tmp_path: Path, free: int, code: str) -> None:
    """Written by the code of 0.20.5 after a gateway that was killed."""
    source = recorded_homes.Source("0.20.5", "real", tmp_path)
    python, home = source.python, source.home("plain")
    at = (datetime.now(UTC) - timedelta(minutes=5)).isoformat()
    life = {"phase": "running", "pid": fake_gateway.DEAD, "started_at": at, "start_time": 1.0}
    memory = {"mem_total_kib": 8_000_000, "mem_available_kib": free}
    beat = {"pid": fake_gateway.DEAD, "updated_at": at, "mem": memory}
    support.put(home / "state" / "gateway.lifecycle.json", json.dumps(life))
    support.put(home / "state" / "gateway.heartbeat", json.dumps(beat))
    env = os.environ | {"HERMES_HOME": str(home)}
    subprocess.run([python, "-c", STARTUP], env=env, cwd=tmp_path, check=True)
    assert [one.code for one in ask("log-rules", home)[1]] == [code]
