"""A problem flaps by the rules of Naemon."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from hermes_doctor.operations.history import flapping
from hermes_doctor.operations.history.flapping import STATES, Flapping


def test_each_change_counts_by_its_age() -> None:
    """The oldest change counts 0.75 of 5 %, the newest 1.25 of it; all together are 100 %."""
    assert flapping.percent("-" + "e" * 20) == pytest.approx(0.75 * 5)
    assert flapping.percent("-" * 20 + "e") == pytest.approx(1.25 * 5)
    assert flapping.percent("-e" * 10 + "-") == pytest.approx(100)
    assert flapping.percent("-" * 21) == 0


def loop(states: str) -> float:
    """The percentage as the loop in Naemon's flapping.c adds it up."""
    changes, last = 0.0, states[0]
    for number in range(1, len(states)):
        if states[number] != last:
            changes += (number - 1) * (1.25 - 0.75) / (len(states) - 2) + 0.75
        last = states[number]
    return changes * 100 / (len(states) - 1)


@given(st.text("-cewi", min_size=STATES, max_size=STATES))
def test_the_same_as_naemon(states: str) -> None:
    """For any 21 states."""
    assert flapping.percent(states) == pytest.approx(loop(states))


def test_starts_late_and_settles_later() -> None:
    """Two disturbances in a row start it; it settles when at most one change is left."""
    known: Flapping | None = None
    flaps = []
    for before, now in ("-e", "e-", "-e", "e-"):
        known = flapping.after(known, before, now)
        flaps.append(known.flaps)
    assert flaps == [False, False, False, True]
    rounds = 0
    assert known is not None
    while known.flaps:
        known = flapping.after(known, "-", "-")
        rounds += 1
    assert 15 < rounds < STATES


def test_one_that_is_steady_is_not_kept() -> None:
    """After 21 equal states there is nothing to remember."""
    known = flapping.after(None, "-", "e")
    assert not known.is_steady
    for _ in range(STATES):
        known = flapping.after(known, "e", "e")
    assert known.is_steady and known.states == "e" * STATES


@given(st.text("-cewi", min_size=1, max_size=200))
def test_hysteresis(states: str) -> None:
    """Whatever comes: it starts at 20 % or more, stops at 5 % or less, and stays bounded."""
    known: Flapping | None = None
    for before, now in zip("-" + states, states, strict=False):
        old = known
        known = flapping.after(known, before, now)
        share = flapping.percent(known.states)
        assert len(known.states) == STATES and 0 <= share <= 100.01
        if old is not None and known.flaps != old.flaps:
            assert share >= 20 if known.flaps else share <= 5
