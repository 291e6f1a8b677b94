"""How a stopped gateway ended, from state/gateway.lifecycle.json."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.model import Status
from tests.helpers import fake_gateway, support
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


@pytest.mark.parametrize("said", ["x", "[]", '{"phase": "running"}', '{"phase": 3, "pid": 1}'])
def test_odd(home: Path, said: str) -> None:
    """A ledger that cannot be read says nothing."""
    support.put(home / "state/gateway.lifecycle.json", said)

    assert ask(ID, home)[0].status is Status.SKIPPED
