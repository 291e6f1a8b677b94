"""Shows the first of many lines of one kind, and how many more there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

MANY, SHOWN = 15, 5
"""If there are more than `MANY` of a kind, `SHOWN` are shown."""
T = TypeVar("T")


def split(
    things: Sequence[T], kind: Callable[[T], Hashable | None], most: int = MANY
) -> tuple[list[T], list[tuple[T, int]]]:
    """Return what to show, and for each kind that is cut off its first and the number left out.

    A kind of None is always shown.
    """
    numbers = Counter(kind(one) for one in things)
    seen: Counter[Hashable] = Counter()
    first: dict[Hashable, T] = {}
    shown = []
    for one in things:
        name = kind(one)
        seen[name] += 1
        if name is None or numbers[name] <= most or seen[name] <= SHOWN:
            shown.append(one)
        first.setdefault(name, one)
    cut = [
        (first[name], number - SHOWN)
        for name, number in numbers.items()
        if name is not None and number > most
    ]
    return shown, cut
