"""The timeline as text: one line for each event, and no flapping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hermes_doctor.diagnosis.examination.timeline import Timeline, TimelineEvent
from hermes_doctor.render import timeline

BEGAN = datetime(2026, 11, 15, 3, 0, tzinfo=UTC)


def shown(*events: TimelineEvent) -> list[str]:
    """The lines of some events, without the head."""
    made = Timeline(BEGAN, events, ())
    return [line.text for line in timeline.lines(Path("/home/x"), made)][3:]


def hang(minute: float) -> TimelineEvent:
    """A problem that begins at a minute."""
    at = BEGAN + timedelta(minutes=minute)
    return TimelineEvent(at, "incident", "Telegram hangs", "log:4", "error", "TG", until=at)


def over(minute: float) -> TimelineEvent:
    """Its end."""
    at = BEGAN + timedelta(minutes=minute)
    return TimelineEvent(at, "recovery", "over: Telegram hangs", code="TG")


def test_a_problem_that_comes_and_goes_is_one_event() -> None:
    """Its times are counted, and only the last end is shown."""
    first, last, blank, step = shown(hang(0), over(0.1), hang(1), over(1.1), hang(2), over(2.1))

    assert "✗ TG Telegram hangs (3 times, until " in first
    assert last.endswith("✓ TG over: Telegram hangs")
    assert (blank, step) == ("", "Next: hermes-doctor explain TG")


@pytest.mark.usefixtures("utc")
def test_a_problem_that_comes_back_much_later_is_another_event() -> None:
    """Both are shown with their ends."""
    lines = shown(hang(0), over(1), hang(60), over(61))

    assert [line.split()[1] for line in lines[:4]] == ["✗", "✓", "✗", "✓"]


def test_a_place_that_the_event_names_is_not_repeated() -> None:
    """`config.yaml was written last` needs no place."""
    [line] = shown(TimelineEvent(BEGAN, "edit", "config.yaml was written last", "config.yaml"))

    assert line.endswith("✎ config.yaml was written last")
