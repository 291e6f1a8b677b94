"""Schedules that tell no time; what may be one is never called so."""

from __future__ import annotations

from typing import Any

import pytest

from hermes_doctor.hermes.stores.damage import has_no_next_run

GOOD = (
    *("* * * * *", "*/5 9-17 * * mon-fri", "0 9 1,15 JAN-mar ?", " 0  0 L * * ", "@daily"),
    *("0 0 * * fri#2", "0 0 * * 7", "30 6 * * * 15", "0/99 * * * *", "٣ * * * *"),
)
BAD: tuple[Any, ...] = (
    *("garbage", "", "0 9 * *", "every day at 9 am", "60 * * * *", "0 24 * * *", "mon 9 * * *"),
    *("0 9 32 * *", "0 9 * 13 *", "0 9 * * 1-8", "0 9 * * noon", "@reboot", "1.5 * * * *", 7, None),
)


@pytest.mark.parametrize("expression", GOOD)
def test_times_of_day(expression: str) -> None:
    """What Hermes reads."""
    assert not has_no_next_run({"kind": "cron", "expr": expression})


@pytest.mark.parametrize("expression", BAD)
def test_no_times_of_day(expression: object) -> None:
    """What it fails on."""
    assert has_no_next_run({"kind": "cron", "expr": expression})


@pytest.mark.parametrize(
    ("minutes", "found"),
    [(60, False), (0.5, False), ("60", True), (None, True), (1e300, True), (float("nan"), True)],
)
def test_intervals(minutes: object, found: bool) -> None:
    """A number of minutes that leads to a moment."""
    assert has_no_next_run({"kind": "interval", "minutes": minutes}) is found


def test_others() -> None:
    """Schedules of other kinds are not judged."""
    assert not has_no_next_run({"kind": "once", "run_at": "soon"})
    assert not has_no_next_run({})
