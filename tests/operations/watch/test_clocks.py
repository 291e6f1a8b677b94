"""Intervals that nobody can set, and gaps that are noticed."""

from __future__ import annotations

import time

import pytest

from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.watch.clocks import ClockReading, MachineClock, gap
from hermes_doctor.repair.schedule import jobs
from hermes_doctor.repair.schedule.jobs import format_duration

START = ClockReading(100.0, 200.0, 1e9)


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (ClockReading(130.0, 230.0, 1e9 + 30), None),
        (ClockReading(130.0, 230.0, 1e9 + 33), None),
        (ClockReading(130.0, 3830.0, 1e9 + 3630), "slept for 60 min"),
        (ClockReading(130.0, 230.0, 1e9 + 7230), "set forward by 2 h"),
        (ClockReading(130.0, 230.0, 1e9 - 86400 * 3), "set back by 3 d"),
        (ClockReading(700.0, 800.0, 1e9 + 600), "no check was made for 10 min"),
        (ClockReading(130.0, None, 1e9 + 30), None),
        (ClockReading(130.0, None, 1e9 + 630), "slept for 10 min"),
    ],
)
def test_gap(now: ClockReading, why: str | None) -> None:
    """Sleep, a clock that was set, and a long pause are each told from a plain wait."""
    before = START if now.boottime is not None else START._replace(boottime=None)

    said = gap(before, now, longest=150.0)

    assert said is None if why is None else why in (said or "")


def test_the_clocks_of_this_machine_agree_with_themselves() -> None:
    """The clocks of this machine agree with themselves."""
    clock = MachineClock()
    before = clock.read()
    time.sleep(0.01)

    assert gap(before, clock.read(), longest=60.0) is None
    assert clock.boot_clock() <= clock.boot_clock()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("1.5m", 90), ("2h", 7200), ("10 min", 600), ("1d", 86400)],
)
def test_spans(text: str, seconds: float) -> None:
    """A number is seconds; a letter says otherwise."""
    assert jobs.parse_seconds(text, "--interval") == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "0.5", "1w", "9" * 40, "1e9", "５s"])
def test_spans_that_are_none(text: str) -> None:
    """Anything else is refused with the option's name."""
    with pytest.raises(Trouble, match="--interval needs a time"):
        jobs.parse_seconds(text, "--interval", least=1.0)


def test_budgets() -> None:
    """A number of repairs in a length of time, and nothing else."""
    assert jobs.parse_budget("3/30m") == (3, 1800.0)
    for wrong in ("3", "0/30m", "3/1s", "x/30m", "-1/30m", "3/", "3//30m", "9999/30m", "³/30m"):
        with pytest.raises(Trouble, match="--budget needs"):
            jobs.parse_budget(wrong)


def test_a_length_of_time_for_people() -> None:
    """A length of time for people."""
    assert [format_duration(s) for s in (5, 119, 180, 7200, 86400 * 3)] == [
        *("5 s", "119 s", "3 min", "2 h", "3 d")
    ]
