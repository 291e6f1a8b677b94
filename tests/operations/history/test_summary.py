"""Availability, days, recurring problems, and what appeared after an update."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from hermes_doctor.operations.history import summary
from hermes_doctor.operations.history.layout import DAY, HOUR
from hermes_doctor.operations.history.reading import Episode, HistoryMark, HistoryRows, HourShare
from hermes_doctor.operations.history.summary import Shares

NOON = 1_793_534_400
"""2026-11-01 12:00 UTC."""


def episode(code: str, first: int, ended: int | None = None, returns: int = 0) -> Episode:
    """One episode of a problem."""
    return Episode(code, "s", "error", "title", first, first, ended, None, None, returns)


def mark(at: int, kind: str = "update") -> HistoryMark:
    """One mark."""
    return HistoryMark(at, kind, "1 → 2", None, None, None, 1, None)


def history(
    *episodes: Episode, hours: tuple[HourShare, ...] = (), marks: int | None = None
) -> HistoryRows:
    """Rows of a home that is known since a week."""
    updates = (mark(marks),) if marks is not None else ()
    return HistoryRows(Path("x"), NOON - 7 * DAY, NOON, episodes, hours, updates)


def test_what_was_not_watched_is_not_available_nor_silent() -> None:
    """The percentage is of the watched time; limited counts as available."""
    hours = (HourShare(NOON - 2 * HOUR, 1800, 900, 900), HourShare(NOON - HOUR, 0, 0, 0))
    shares = summary.total(history(hours=hours), NOON - 2 * HOUR, NOON)

    assert shares == Shares(1800, 900, 900, 3600)
    assert shares.percent == 75.0 and Shares().percent is None


def test_before_the_first_record_nothing_is_missing() -> None:
    """A history of a week has not failed to watch the three weeks before."""
    assert summary.total(history(), NOON - 30 * DAY, NOON).unknown == 7 * DAY


@given(st.lists(st.integers(0, 10**12), min_size=3, max_size=3))
def test_an_hour_has_an_hour(shares: list[int]) -> None:
    """Whatever the file says."""
    total = summary.total(history(hours=(HourShare(NOON, *shares),)), NOON, NOON + HOUR)

    assert total.watched <= HOUR and min(total) >= 0


@pytest.mark.usefixtures("utc")
def test_days_are_local() -> None:
    """Each day from the first one until today, also those without a record."""
    days = summary.days(
        history(hours=(HourShare(NOON, 60, 0, 0),)), date(2026, 10, 30), NOON - 7 * DAY, NOON + 60
    )

    assert [one.day.day for one in days] == [30, 31, 1]
    assert days[0].shares == Shares(0, 0, 0, DAY) and days[-1].shares.working == 60


def test_recurring() -> None:
    """Most often first; one that came once is not among them."""
    found = summary.recurring(
        [episode("A", 10, 20), episode("B", 10, 20), episode("A", 30), episode("C", 5, 6, 4)], 100
    )

    assert [(one.code, one.times, one.seconds, one.last) for one in found] == [
        ("C", 5, 1, 5),
        ("A", 2, 80, 30),
    ]


def test_what_appeared_after_an_update() -> None:
    """Only the order in time is claimed, and only for what was not there before."""
    rows = history(
        episode("OLD", NOON - 3 * DAY, NOON - 2 * DAY),
        episode("OPEN", NOON - 3 * DAY),
        episode("OLD", NOON + 60),
        episode("WITH", NOON),
        episode("SOON", NOON + 180, NOON + 200),
        episode("SOON", NOON + 300),
        episode("LATE", NOON + 2 * DAY),
        marks=NOON,
    )

    assert [(one.episode.code, one.seconds) for one in summary.appeared(rows)] == [
        ("WITH", 0),
        ("SOON", 180),
    ]


def test_an_update_soon_after_another() -> None:
    """A problem belongs to the last update before it."""
    rows = history(episode("A", NOON + 100))._replace(marks=(mark(NOON), mark(NOON + 50, "doctor")))

    assert [one.update.kind for one in summary.appeared(rows)] == ["doctor"]
