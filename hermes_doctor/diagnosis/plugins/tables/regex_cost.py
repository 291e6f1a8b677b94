"""Estimate from its parse tree how long a regular expression may take on hostile text."""

from __future__ import annotations

import re._constants as kinds  # type: ignore[import-not-found]
from collections.abc import Iterator, Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple

TEXT = 4000
"""The maximum length of a text that a pattern is applied to."""
MOST = 20_000_000
"""This many ways to match a pattern to a text are tried in well under a second."""
REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
_FEW, _MANY = 5, 100
_SAMPLE = "".join(map(chr, range(32, 127))) + "\t\né漢✗"


class _Stretch(NamedTuple):
    """A repetition that can still match what follows it in the pattern."""

    chars: frozenset[str]
    max_repeats: int


def subtrees(kind: Any, value: Any) -> Iterator[Any]:
    """Yield the subtrees of one node."""
    if kind is kinds.SUBPATTERN:
        yield value[3]
    elif kind is kinds.BRANCH:
        yield from value[1]
    elif kind in REPEATS:
        yield value[2]
    elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        yield value[1]
    elif kind is kinds.ATOMIC_GROUP:
        yield value
    elif kind is kinds.GROUPREF_EXISTS:
        yield from (one for one in value[1:] if one is not None)


def has_nested_repeats(tree: Any, outer: int = 1) -> bool:
    """Tell whether something that repeats often can itself match in several ways."""
    for kind, value in tree:
        most = min(value[1], TEXT) if kind in REPEATS else 1
        several = kind is kinds.BRANCH or (kind in REPEATS and value[0] != value[1])
        if several and (outer > _FEW or outer * most > _MANY > most):
            return True
        if several and outer > 1 and most > _MANY:
            return True
        if any(
            has_nested_repeats(subtree, outer * max(most, 1)) for subtree in subtrees(kind, value)
        ):
            return True
    return False


def match_ways(tree: Any, pattern: str) -> int:
    """Return the maximum number of ways in which a pattern's repetitions can divide up a text.

    A pattern without an anchor counts as one with another repetition before it.
    """
    anchored = len(tree) and tree[0] == (kinds.AT, kinds.AT_BEGINNING)
    sample = _SAMPLE + "".join(sorted(set(pattern) - set(_SAMPLE)))
    begin = () if anchored else (_Stretch(frozenset(sample), TEXT),)
    return _walk(tree, begin, sample)[1]


def _walk(tree: Any, before: tuple[_Stretch, ...], sample: str) -> tuple[tuple[_Stretch, ...], int]:
    """Return the undelimited repetitions after a part, and the largest number of ways within it."""
    loose, most = before, _product(before)
    for kind, value in tree:
        if kind in REPEATS and value[1] > 1:
            chars = _chars(value[2], sample)
            if value[0] > 0:
                loose = _settled(loose, chars)
            if value[0] != value[1]:
                met = tuple(stretch for stretch in loose if stretch.chars & chars)
                loose = (*met, _Stretch(chars, min(value[1], TEXT)))
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            most = max(most, _walk(value[1], loose, sample)[1])
        elif kind is kinds.BRANCH or kind in REPEATS:
            ended = [_walk(subtree, loose, sample) for subtree in subtrees(kind, value)]
            if kind in REPEATS and not value[0]:
                ended.append((loose, 1))
            loose = max((after for after, _ in ended), key=_product)
            most = max(most, *(number for _, number in ended))
        elif within := list(subtrees(kind, value)):
            for one in within:
                loose, number = _walk(one, loose, sample)
                most = max(most, number)
        elif kind is not kinds.AT and kind is not kinds.GROUPREF:
            loose = _settled(loose, _chars([(kind, value)], sample))
        most = max(most, _product(loose))
    return loose, most


def _settled(loose: Sequence[_Stretch], chars: frozenset[str]) -> tuple[_Stretch, ...]:
    """Keep the repetitions that can match one of these characters; the others end before it."""
    return tuple(stretch for stretch in loose if stretch.chars & chars)


def _product(loose: Sequence[_Stretch]) -> int:
    found = 1
    for stretch in loose:
        found *= stretch.max_repeats
    return found


def _chars(tree: Any, sample: str) -> frozenset[str]:
    """Return the characters of the sample that a part can match."""
    found: set[str] = set()
    for kind, value in tree:
        parts = list(subtrees(kind, value))
        for part in parts:
            found |= _chars(part, sample)
        if kind is kinds.LITERAL:
            found |= {chr(value), chr(value).swapcase()}
        elif not parts:
            found |= {char for char in sample if _holds(kind, value, char)}
    return frozenset(found)


def _holds(kind: Any, value: Any, char: str) -> bool:
    either = {ord(char), ord(char.swapcase()[0])}
    if kind is kinds.LITERAL:
        return value in either
    if kind is kinds.NOT_LITERAL:
        return either != {value}
    if kind is kinds.ANY:
        return True
    if kind is kinds.RANGE:
        return any(value[0] <= one <= value[1] for one in either)
    if kind is kinds.CATEGORY:
        tells = {
            kinds.CATEGORY_DIGIT: char.isdigit(),
            kinds.CATEGORY_SPACE: char.isspace(),
            kinds.CATEGORY_WORD: char.isalnum() or char == "_",
            kinds.CATEGORY_NOT_DIGIT: not char.isdigit(),
            kinds.CATEGORY_NOT_SPACE: not char.isspace(),
            kinds.CATEGORY_NOT_WORD: not (char.isalnum() or char == "_"),
        }
        return tells.get(value, True)
    if kind is kinds.IN:
        negated = value[0][0] is kinds.NEGATE
        return negated != any(_holds(k, v, char) for k, v in value[negated:])
    return kind not in (kinds.AT, kinds.GROUPREF)


def ends_with_rest(tree: Any) -> bool:
    """Tell whether the pattern ends with a match of the whole rest of the line."""
    for kind, value in reversed(list(tree)):
        if kind in (kinds.AT, kinds.ASSERT, kinds.ASSERT_NOT):
            continue
        chars = _chars(value[2], _SAMPLE) if kind in REPEATS else frozenset()
        if " " in chars and len(chars) > 80 and value[1] > 200:
            return True
        if any(ends_with_rest(subtree) for subtree in subtrees(kind, value)):
            return True
        if not (kind in REPEATS and value[0] == 0):
            return False
    return False
