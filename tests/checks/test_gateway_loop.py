"""Does the loop turn: heartbeat, API server, the place where it waits; and what excuses it."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.core.model import Finding, Severity, Status
from hermes_doctor.core.system.mounts import FileUser, Space
from hermes_doctor.diagnosis.probes import pulse
from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
from tests.helpers import budget, fake_gateway, support
from tests.helpers.one_check import ask

CHECK = "gateway-loop"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is silence after a moment already."""
    monkeypatch.setattr(pulse, "LONG", 0.5)
    monkeypatch.setattr(pulse, "SHORT", 0.3)
    monkeypatch.setattr(pulse, "WATCH", 0.3)


@pytest.fixture
def aged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, float], None]:
    """Makes a heartbeat older than it is, and its process as well."""

    def make(home: Path, seconds: float) -> None:
        path = home / "state" / "gateway.heartbeat"
        beat = json.loads(path.read_text())
        beat["updated_at"] = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
        beat["monotonic"] = time.monotonic() - seconds
        support.put(path, json.dumps(beat))
        early = datetime.now(UTC) - timedelta(hours=1)
        monkeypatch.setattr(
            "hermes_doctor.hermes.processes.process_stat.start_moment", lambda _: early
        )

    return make


def one(home: Path) -> Finding:
    """The one finding."""
    [finding] = ask(CHECK, home)[1]
    return finding


def test_healthy(home: Path) -> None:
    """No gateway: not asked. A heartbeat, an answer, or rest between events: it turns."""
    assert ask(CHECK, home)[0].status is Status.SKIPPED
    for wants in ({"beat": True}, {"api": "answers", "beat": False, "platforms": SERVES}):
        with fake_gateway.gateway(home, **wants):
            assert ask(CHECK, home)[0].status is Status.OK


SERVES = {"api_server": "connected"}


def test_old_heartbeat(home: Path, aged: Callable[[Path, float], None]) -> None:
    """Up to two minutes are fine, more are not; since its last beat."""
    with fake_gateway.gateway(home):
        aged(home, 100)
        assert ask(CHECK, home)[0].status is Status.OK
        aged(home, 200)
        finding = one(home)

    assert (finding.code, finding.severity) == ("GW-LOOP-BLOCKED", Severity.CRITICAL)
    assert finding.fix == "restart-gateway"
    assert finding.since is not None


def test_answer_beats_an_old_heartbeat(home: Path, aged: Callable[[Path, float], None]) -> None:
    """Whoever answers lives, whatever it could not write."""
    with fake_gateway.gateway(home, api="answers", platforms=SERVES):
        aged(home, 900)
        assert ask(CHECK, home)[0].status is Status.OK


def test_silent(home: Path, aged: Callable[[Path, float], None]) -> None:
    """A door where nobody opens: a warning after a fresh heartbeat, certain after an old one."""
    with fake_gateway.gateway(home, api="silent", platforms=SERVES):
        fresh = one(home)
        aged(home, 200)
        old = one(home)

    assert (fresh.severity, fresh.fix) == (Severity.WARNING, None)
    assert (old.severity, old.fix) == (Severity.CRITICAL, "restart-gateway")


def test_silent_without_a_heartbeat(home: Path) -> None:
    """An older release: no look is certain, however many wait; the fix has the patience for it."""
    with fake_gateway.gateway(home, api="silent", beat=False, platforms=SERVES):
        first = one(home)
        second = one(home)

    assert (first.severity, second.severity) == (Severity.WARNING, Severity.WARNING)
    assert (second.fix, second.data["certain"]) == ("restart-gateway", False)
    assert "not accepted" in second.evidence[1].what


def test_neither(home: Path) -> None:
    """Stuck in one place without heartbeat and API server is a warning; while starting unknown."""
    with fake_gateway.gateway(home, beat=False) as running:  # it waits for its input, for no event
        finding = one(home)
        state = json.loads((home / "gateway_state.json").read_text())
        support.put(home / "gateway_state.json", json.dumps(state | {"gateway_state": "starting"}))
        starting = ask(CHECK, home)

    assert finding.severity is Severity.WARNING
    assert "waited in one place" in finding.evidence[0].what
    assert (starting[0].status, starting[1]) == (Status.UNKNOWN, [])
    assert running.pid


def test_suspended(home: Path) -> None:
    """A process stopped by SIGSTOP is suspended, and `kill -CONT` continues it."""
    with fake_gateway.gateway(home) as running:
        os.kill(running.pid, signal.SIGSTOP)
        finding = one(home)
        os.kill(running.pid, signal.SIGCONT)

    assert (finding.code, finding.severity) == ("GW-SUSPENDED", Severity.CRITICAL)
    assert f"kill -CONT {running.pid}" in finding.next


def test_no_descriptor_left(home: Path, aged: Callable[[Path, float], None]) -> None:
    """Neither heartbeat nor answer can be had then: no verdict about the loop."""
    with fake_gateway.gateway(home, api="silent", platforms=SERVES, open=20, limit=24):
        aged(home, 300)
        result, findings = ask(CHECK, home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "no descriptor left" in (result.reason or "")


def test_full_disk(
    home: Path, aged: Callable[[Path, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same with a full disk."""
    full = Space(10**9, 0, 1000, 500, read_only=False)
    monkeypatch.setattr("hermes_doctor.core.system.mounts.free_space", lambda *_, **__: full)
    with fake_gateway.gateway(home):
        aged(home, 300)
        result, findings = ask(CHECK, home)

    assert (result.status, findings) == (Status.UNKNOWN, [])
    assert "disk is full" in (result.reason or "")


@pytest.mark.sampled
@pytest.mark.parametrize("api", ["", "silent"])
def test_closed_folder(
    api: str, home: Path, aged: Callable[[Path, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat that may not be written says nothing: judged as if there were none."""
    monkeypatch.setattr(GatewayView, "user", lambda self: FileUser(12345, frozenset()))
    with (
        fake_gateway.gateway(home, api=api, platforms=SERVES) if api else fake_gateway.gateway(home)
    ):
        aged(home, 300)
        hindered = one(home)
        os.chmod(home / "state", 0o777)
        able = one(home)

    assert (hindered.severity, able.severity) == (Severity.WARNING, Severity.CRITICAL)
    owner = os.stat(home / "state").st_uid
    assert f"state/ belongs to uid {owner}" in hindered.evidence[0].what


def test_rests_between_events(
    home: Path, aged: Callable[[Path, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A main thread that waits for events turns, whatever keeps it from writing that down."""
    monkeypatch.setattr(
        "hermes_doctor.hermes.processes.process_stat.waits_in", lambda pid: "do_epoll_wait"
    )
    with fake_gateway.gateway(home):
        aged(home, 300)
        assert ask(CHECK, home)[0].status is Status.OK
    with fake_gateway.gateway(home, api="silent", platforms=SERVES):
        aged(home, 300)
        assert one(home).severity is Severity.WARNING


def test_machine_that_slept(home: Path, aged: Callable[[Path, float], None]) -> None:
    """Hours by the wall and seconds by the kernel's clock: the machine slept, and it turns."""
    with fake_gateway.gateway(home):
        aged(home, 300)
        path = home / "state" / "gateway.heartbeat"
        beat = json.loads(path.read_text()) | {"monotonic": time.monotonic() - 5}
        support.put(path, json.dumps(beat))

        assert ask(CHECK, home)[0].status is Status.OK


def test_heartbeat_of_another(home: Path) -> None:
    """A fresh heartbeat of another process proves nothing for this one."""
    with fake_gateway.gateway(home):
        path = home / "state" / "gateway.heartbeat"
        beat = json.loads(path.read_text()) | {"pid": os.getpid()}
        support.put(path, json.dumps(beat))

        assert one(home).severity is Severity.WARNING


def test_clock_set_back(home: Path) -> None:
    """A heartbeat in the future counts by the kernel's clock, and proves nothing without it."""
    with fake_gateway.gateway(home):
        path = home / "state" / "gateway.heartbeat"
        beat = json.loads(path.read_text())
        beat["updated_at"] = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        support.put(path, json.dumps(beat | {"monotonic": time.monotonic() - 5}))
        fresh = ask(CHECK, home)
        # Longer than a heartbeat may be old, and shorter than a new machine runs.
        support.put(path, json.dumps(beat | {"monotonic": time.monotonic() - 150}))
        old = ask(CHECK, home)
        support.put(path, json.dumps(beat | {"monotonic": None}))
        nothing = ask(CHECK, home)

    assert fresh[0].status is Status.OK
    [finding] = old[1]
    assert (finding.code, finding.severity) == ("GW-LOOP-BLOCKED", Severity.CRITICAL)
    assert finding.since is not None and finding.since <= datetime.now(UTC)
    [doubt] = nothing[1]
    assert doubt.severity is Severity.WARNING, "it was judged by where it waits"


VALUES = ("null", "-1", "1e999", "NaN", "9" * 5000, '""', "[]", "{}", '"9999-99-99"', "true")


def spoilt(beat: bytes, dice: random.Random) -> bytes:
    """A heartbeat that something has damaged, or that somebody has forged."""
    kind = dice.randrange(5)
    if kind == 0:
        return beat[: dice.randrange(len(beat))]
    if kind == 1:
        return dice.randbytes(dice.choice([1, 100, 100_000]))
    if kind == 2:
        return b"[" * dice.choice([10, 100_000])
    if kind == 3:
        at = dice.randrange(len(beat))
        return beat[:at] + dice.randbytes(dice.randint(1, 8)) + beat[at + 1 :]
    known = json.loads(beat)
    names = dice.sample(sorted(known), dice.randint(1, len(known)))
    others = ", ".join(f"{json.dumps(name)}: {dice.choice(VALUES)}" for name in names)
    kept = json.dumps({name: known[name] for name in known if name not in names})
    return (kept[:-1] + (", " if len(kept) > 2 else "") + others + "}").encode()


@pytest.mark.parametrize("api", ["answers", "silent"])
def test_random_heartbeats(home: Path, api: str) -> None:
    """Whatever the file says, the check ends, and a gateway that answers is not restarted."""
    dice = budget.chance(31)
    path = home / "state" / "gateway.heartbeat"
    with fake_gateway.gateway(home, api=api, platforms=SERVES):
        beat = path.read_bytes()
        for _ in range(budget.tries(5, 60)):
            data = spoilt(beat, dice)
            support.put(path, data)
            result, findings = ask(CHECK, home)
            assert result.status is not Status.CRASHED, (data, result.reason)
            assert api == "silent" or not findings, data
