"""Check the regular expressions of rules, and find the literals that every match contains."""

from __future__ import annotations

import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

from hermes_doctor.plugins.tables import regex_cost

SHORT = 3
"""Shorter literals occur in almost every line and are not used."""
LONGEST = 2000


def faults(pattern: str, fields: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a pattern, in words."""
    if len(pattern) > LONGEST:
        yield f"is longer than {LONGEST} characters"
        return
    try:
        tree = parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield f"is not a regular expression ({error})"
        return
    for name in tree.state.groupdict:
        if name not in fields:
            yield f"uses the group {name!r}, which is not one of {', '.join(fields)}"
    if regex_cost.has_nested_repeats(tree):
        yield "repeats a repetition or a choice, which can take very long"
    elif regex_cost.match_ways(tree, pattern) > regex_cost.MOST:
        yield "can match a line in too many ways; use fewer long repetitions, or begin with `^`"
    if regex_cost.ends_with_rest(tree):
        yield "ends with `.*`, and what it matches is shown; let it end before that"
    if re.compile(pattern).search(""):
        yield "matches an empty line"


def literals(pattern: str) -> tuple[str, ...]:
    """Return literals of which every match contains at least one; empty if unknown."""
    tree = parser.parse(pattern)
    return () if tree.state.flags & re.IGNORECASE else tuple(sorted(_best(tree)))


def small_literals(pattern: str) -> tuple[str, ...]:
    """Return the same in small letters, for searching in a text in small letters."""
    return tuple(sorted({one.lower() for one in _best(parser.parse(pattern))}))


def _best(tree: Any) -> set[str]:
    """Of the parts that a match must contain, return the one with the longest texts."""
    return max(_needed(tree), key=lambda texts: min(map(len, texts)), default=set())


def _needed(tree: Any) -> Iterator[set[str]]:
    """Yield each part that a match must contain, as the set of its alternative texts."""
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
        elif kind is kinds.ASSERT and value[0] > 0:
            yield from _needed(value[1])
        elif kind is kinds.BRANCH:
            ways = [_best(one) for one in value[1]]
            if all(ways):
                yield set().union(*ways)
        elif kind in regex_cost.REPEATS and value[0] > 0:
            yield from _needed(value[2])
    if len(run) >= SHORT:
        yield {run}
