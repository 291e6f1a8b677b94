"""Regular expressions of rules: may they run on hostile text, and what must a match contain."""

from __future__ import annotations

import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

SHORT = 3
"""A part shorter than this is in every line."""


def faults(pattern: str, fields: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with a pattern, in words."""
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield f"is not a regular expression ({error})"
        return
    for name in tree.state.groupdict:
        if name not in fields:
            yield f"takes {name!r}, which is none of {', '.join(fields)}"
    if _nested(tree):
        yield "repeats a repetition, which can take for ever"
    if _wide(tree) > 1:
        yield "has `.*` twice, which can take very long; say what stands between"
    if _open_end(tree):
        yield "ends with `.*`, and what it matches is shown; let it end before that"
    if re.compile(pattern).search(""):
        yield "matches an empty line"


def literals(pattern: str) -> tuple[str, ...]:
    """Texts of which one is in everything that matches; none where that cannot be told."""
    tree = parser.parse(pattern)
    return () if tree.state.flags & re.IGNORECASE else tuple(sorted(_best(tree)))


def _best(tree: Any) -> set[str]:
    """Of the parts that a match must have, the one that is told by the longest texts."""
    return max(_needed(tree), key=lambda texts: min(map(len, texts)), default=set())


def _needed(tree: Any) -> Iterator[set[str]]:
    """Each part that a match must have, by the texts of which it has one."""
    run = ""
    for kind, value in tree:
        if kind is kinds.LITERAL:
            run += chr(value)
            continue
        if len(run) >= SHORT:
            yield {run}
        run = ""
        if kind is kinds.SUBPATTERN and not value[1] and not value[2]:
            yield from _needed(value[3])
        elif kind is kinds.BRANCH:
            ways = [_best(one) for one in value[1]]
            if all(ways):
                yield set().union(*ways)
        elif kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT) and value[0] > 0:
            yield from _needed(value[2])
    if len(run) >= SHORT:
        yield {run}


def _inside(kind: Any, value: Any) -> Iterator[Any]:
    """The trees inside one part of a tree."""
    if kind is kinds.SUBPATTERN:
        yield value[3]
    elif kind is kinds.BRANCH:
        yield from value[1]
    elif kind in _REPEATS:
        yield value[2]
    elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        yield value[1]


_REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
_LONG = 20


def _nested(tree: Any, inside: bool = False) -> bool:
    """Whether something that repeats without a bound holds another such."""
    for kind, value in tree:
        endless = kind in _REPEATS and value[1] > _LONG
        if endless and inside:
            return True
        if any(_nested(one, inside or endless) for one in _inside(kind, value)):
            return True
    return False


def _wide(tree: Any) -> int:
    """How many `.*` follow on one another at most."""
    found = 0
    for kind, value in tree:
        if kind in _REPEATS and value[1] > _LONG and value[2][0][0] is kinds.ANY:
            found += 1
        else:
            found += max((_wide(one) for one in _inside(kind, value)), default=0)
    return found


def _open_end(tree: Any) -> bool:
    """Whether it ends with everything up to the end of the line, in a group `reason` or not."""
    if not len(tree):
        return False
    kind, value = tree[-1]
    if kind is kinds.AT and len(tree) > 1:
        kind, value = tree[-2]
    if kind in _REPEATS and value[2][0][0] is kinds.ANY:
        return bool(value[1] > 200)
    if kind is kinds.SUBPATTERN:
        return _open_end(value[3])
    return kind is kinds.BRANCH and any(_open_end(one) for one in value[1])
