"""Find the known word that a misspelt one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable

_SHORT, _LONG, _FARTHEST = 4, 8, 3


def closest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that differs by a typo (case, hyphen, a letter or two), or None.

    Words of less than four letters are too short to tell a typo from another word.
    """
    found = _by_distance(word, known)
    return found[0][2] if found else None


def unambiguous_match(word: str, known: Iterable[str]) -> str | None:
    """Return the word itself or the known word it is a typo of; None if two are equally close."""
    known = list(known)
    if word in known:
        return word
    found = _by_distance(word, known)
    if not found or (found[0][0] and found[1:] and found[1][0] == found[0][0]):
        return None
    return found[0][2]


def _by_distance(word: str, known: Iterable[str]) -> list[tuple[int, int, str]]:
    plain = _plain(word)
    most = 0 if len(plain) < _SHORT else 1 if len(plain) < _LONG else 2
    found = []
    for other in known:
        if abs(len(other) - len(word)) > _FARTHEST or other == word:
            continue
        steps = _steps(plain, _plain(other), most)
        if steps is not None:
            found.append((steps, _steps(word, other, 2 * _FARTHEST) or 0, other))
    return sorted(found)


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")


def _steps(a: str, b: str, most: int) -> int | None:
    """Count the letters to add, drop, change or swap with a neighbour; None if more than `most`."""
    if a == b:
        return 0
    if abs(len(a) - len(b)) > most or len({*a} ^ {*b}) > 2 * most:
        return None
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, right in enumerate(b, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None
