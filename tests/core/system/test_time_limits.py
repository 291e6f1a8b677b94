"""Limits in the seconds of an idle machine: more by the clock where processors are shared."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands, time_limits
from hermes_doctor.core.system.cached_calls import once
from hermes_doctor.diagnosis.probes.probes import Probes
from tests.helpers import busy_machine


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A machine with two processors; how many processes want to run there can be set."""
    machine = {"runnable": 1.0}
    monkeypatch.setattr(time_limits, "_FRESH", -1.0)
    monkeypatch.setattr(time_limits, "_count", lambda: 2.0)
    monkeypatch.setattr(time_limits, "_small_share", lambda: 1.0)
    monkeypatch.setattr(time_limits, "_runnable", lambda: machine["runnable"])
    return machine


def test_factor(running: dict[str, float]) -> None:
    """As many times slower as processes share a processor, within bounds."""
    for runnable, expected in ((0, 1), (2, 1), (3, 1.5), (10, 5), (1000, time_limits.MOST)):
        running["runnable"] = runnable
        assert time_limits.factor() == expected
        assert time_limits.stretch(2.0) == 2.0 * expected


def test_a_share_of_a_processor(running: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A container that is allowed a tenth of a processor has ten times as long."""
    monkeypatch.setattr(time_limits, "_small_share", lambda: 10.0)
    assert time_limits.factor() == 10.0


def test_a_clock_that_was_ahead(running: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A factor that was measured later than now is not used."""
    running["runnable"] = 6.0
    monkeypatch.setattr(time_limits, "_FRESH", 0.05)
    monkeypatch.setattr(time_limits, "_measured", (time.monotonic() + 600, 1.0))
    assert time_limits.factor() == 3.0


def test_a_real_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy processes on one processor are seen at once; the other processors stay free."""
    allowed = os.sched_getaffinity(0)
    monkeypatch.setattr(time_limits, "_count", lambda: 1.0)
    monkeypatch.setattr(time_limits, "_FRESH", -1.0)
    os.sched_setaffinity(0, {min(allowed)})  # the busy processes inherit it
    try:
        with busy_machine.machine(4):
            assert time_limits.factor() >= 4
    finally:
        os.sched_setaffinity(0, allowed)


def test_what_hangs_ends(running: dict[str, float]) -> None:
    """However busy the machine, a limit grows by a minute at most."""
    running["runnable"] = 1000.0
    assert time_limits.stretch(30.0) == 30.0 + time_limits.EXTRA
    clock = time_limits.Stopwatch(time.monotonic() - 30.0 - time_limits.EXTRA)
    assert clock.read() >= 30.0


def test_stopwatch(running: dict[str, float]) -> None:
    """It counts slowly for as long as the machine is busy, and no longer."""
    running["runnable"] = 20.0
    clock = time_limits.Stopwatch(time.monotonic() - 5.0)
    assert 0.5 <= clock.read() < 1.0
    running["runnable"] = 1.0
    time.sleep(0.05)
    assert clock.read() > 0.54


def test_waiting_ends(running: dict[str, float]) -> None:
    """A wait ends when the event comes, or when the limit is over, however busy the machine."""
    running["runnable"] = 6.0
    never, soon = threading.Event(), threading.Event()
    soon.set()
    began = time.monotonic()
    assert time_limits.Stopwatch().wait(soon, 60)
    assert not time_limits.Stopwatch().wait(never, 0.1)
    assert 0.3 <= time.monotonic() - began < 20


class Slow(Probes):
    """Takes six times its limit by the clock, so that a real load changes nothing."""

    looks = 0

    @once(limit=0.2)
    def slow(self) -> str:
        """Answers, but slowly."""
        self.looks += 1
        time.sleep(1.2)
        return "here"


def test_a_look_on_a_busy_machine(running: dict[str, float], home: Path) -> None:
    """What would hang on an idle machine is waited for on a busy one."""
    with pytest.raises(CouldNotLook):
        Slow(Home(home)).slow()
    running["runnable"] = 40.0
    assert Slow(Home(home)).slow() == "here"


def test_late_callers_do_not_wait_again(
    home: Path, running: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that hung costs its limit once, not once for each check that asks for it."""
    probes = Slow(Home(home))
    with pytest.raises(CouldNotLook):
        probes.slow()
    waits: list[float | None] = []
    [cell] = probes.cache.calls.values()
    monkeypatch.setattr(cell, "done", Counted(waits))
    with pytest.raises(CouldNotLook):
        probes.slow()
    assert waits == [] and probes.looks == 1


class Counted(threading.Event):
    """An event that never comes, and counts who waits for it."""

    def __init__(self, waits: list[float | None]) -> None:
        super().__init__()
        self.waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        """Count the wait, and do not wait."""
        self.waits.append(timeout)
        return False


def test_a_command_on_a_busy_machine(running: dict[str, float]) -> None:
    """So with commands; what was written to one is written once."""
    with pytest.raises(CouldNotLook, match=r"did not answer within 0\.2 s"):
        commands.ask("sh", "-c", "sleep 0.6; cat", stdin=b"hello", limit=0.2)
    running["runnable"] = 40.0
    assert commands.ask("sh", "-c", "sleep 0.6; cat", stdin=b"hello", limit=0.2).out == "hello"


def test_processors() -> None:
    """Those of the machine, as the runnable processes are counted."""
    assert time_limits._count() == os.cpu_count()


@pytest.mark.parametrize(
    ("load", "now", "factor"),
    [(0.0, 1.0, 1.0), (1.0, 1.0, 1.0), (2.0, 1.0, 2.0), (0.0, 2.5, 2.5), (9.0, 1.0, 3.0)],
)
def test_patience(monkeypatch: pytest.MonkeyPatch, load: float, now: float, factor: float) -> None:
    """The load of the last minute, or of this moment, gives a command more time, within bounds."""
    monkeypatch.setattr(time_limits, "_count", lambda: 1.0)
    monkeypatch.setattr(time_limits, "factor", lambda: now)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))

    assert time_limits.patience.__wrapped__() == factor
