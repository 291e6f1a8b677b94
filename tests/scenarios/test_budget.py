"""The sample of cases that `make test` tries is the same each time, and leaves out no kind."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.helpers import budget


@pytest.fixture(autouse=True)
def usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `make test`, whichever command runs this."""
    monkeypatch.setattr(budget, "everything", False)


@pytest.mark.parametrize("number", [1, 2, 3, 7, 50, 99])
def test_first_last_and_a_spread(number: int) -> None:
    """The first and the last case are tried, and no part of the others is left out."""
    chosen = budget.sample(range(100), number)

    assert {0, 99} <= set(chosen) and list(chosen) == sorted(set(chosen))
    assert max(2, number - 2) <= len(chosen) <= max(2, number)
    gaps = [b - a for a, b in pairwise(chosen)]
    assert number < 4 or max(gaps) <= 2 * 100 // (number - 2)
    assert budget.sample(range(100), number) == chosen


def test_each_kind() -> None:
    """One of each kind is tried, also if these are more than the budget has."""
    kinds = ["write"] * 40 + ["rename"] + ["write"] * 40 + ["exchange", "unlink", "write"]

    chosen = budget.sample(range(len(kinds)), 3, lambda n: kinds[n])

    assert {kinds[n] for n in chosen} == set(kinds)


def test_every_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make test-every-case` tries all of them, and so does `make test` where they are few."""
    assert list(budget.sample(range(5), 5)) == list(range(5))
    monkeypatch.setattr(budget, "everything", True)

    assert list(budget.sample(range(100), 3)) == list(range(100))
    assert (budget.tries(3, 9), budget.sample("abc", 1)) == (9, "abc")
