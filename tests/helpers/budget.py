"""How many cases a test tries: a spread of them, or with `--every-case` every one.

`make test` and CI have minutes for the whole suite, and most places where a run can be killed are
like the place before. The same test tries a sample there and every case in `make test-every-case`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")
everything = False
"""Whether every case is tried; `tests/conftest.py` sets it."""
ATTACK = "HERMES_DOCTOR_ATTACK"
"""The variable with the seed of an attack (`make attack`), whose cases are random."""
seed: int | None = int(os.environ[ATTACK]) if os.environ.get(ATTACK) else None
given = 0
"""How many cases this process has been given, for the counts of an attack."""


def sample(
    cases: Sequence[T], budget: int, kind: Callable[[T], Hashable] | None = None
) -> Sequence[T]:
    """Return about so many of the cases, in their order: the same ones in each run.

    The first, the last and one of each kind are always among them, even if these are more. In an
    attack they are random.
    """
    if seed is not None:
        dice, number = chance(len(cases)), min(budget, len(cases))
        return _count([cases[n] for n in sorted(dice.sample(range(len(cases)), number))])
    if everything or len(cases) <= budget:
        return cases
    chosen = {0, len(cases) - 1}
    if kind:
        first: dict[Hashable, int] = {}
        for n, case in enumerate(cases):
            first.setdefault(kind(case), n)
        chosen.update(first.values())
    chosen.update(_spread(len(cases), budget - len(chosen)))
    return [cases[n] for n in sorted(chosen)]


def tries(usual: int, every: int) -> int:
    """Return how often a test tries random cases: `usual`, or with `--every-case` the other."""
    return _counted(every if everything else usual)


def examples(number: int) -> int:
    """Return how many of so many random examples are tried."""
    return _counted(number if everything else max(10, number // 5))


def chance(number: int) -> random.Random:
    """Return dice that fall the same way in each run; in an attack, as its seed says."""
    return random.Random(number if seed is None else seed * 1_000_003 + number)


def _counted(number: int) -> int:
    global given
    given += number
    return number


def _count(cases: list[T]) -> list[T]:
    _counted(len(cases))
    return cases


def _spread(length: int, number: int) -> list[int]:
    """Return so many numbers below the length, at equal distances."""
    return [(2 * n + 1) * length // (2 * number) for n in range(number)]
