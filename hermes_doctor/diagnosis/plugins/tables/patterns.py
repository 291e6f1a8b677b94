"""Check the regular expressions of rules, and find the literals that every match contains."""

from __future__ import annotations

import itertools
import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hermes_doctor.diagnosis.plugins.tables import regex_cost
from hermes_doctor.diagnosis.plugins.word_index import WORD, word_starts

SHORT = 3
"""Shorter literals occur in almost every line and are not used."""
LONGEST = 2000
COMMON = frozenset({
    "error", "failed", "http", "status", "request", "server", "connect", "connection", "not",
    "message", "response", "model", "file", "token", "invalid", "missing", "required", "auth",
    "code", "config", "client", "session", "bad", "api", "channel", "context", "json", "found",
})  # fmt: skip
"""Words that are in too many texts to tell them apart."""


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
    if tree.state.flags & re.IGNORECASE:
        return ()
    return tuple(sorted({one.removeprefix(WORD) for one in _best(tree)}))


def literal_sets(pattern: str) -> list[tuple[str, ...]]:
    """Return all sets of literals that are known: every match contains one of each."""
    tree = parser.parse(pattern)
    if tree.state.flags & re.IGNORECASE:
        return []
    found = _needed(tree, _length, False)
    return [tuple(sorted({text.removeprefix(WORD) for text in texts})) for texts in found]


def small_literals(pattern: str) -> tuple[str, ...]:
    """Return the same in small letters; one that begins a word has `WORD` in front."""
    return next(iter(needed_literals(pattern)), ())


def needed_literals(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Return sets of literals: every match contains one of each.

    The first is the quickest to look up; only its literals have `WORD` in front.
    """
    found = [
        tuple(sorted({text.lower() for text in texts}))
        for texts in _needed(parser.parse(pattern), _rarity, False)
    ]
    found.sort(key=lambda texts: (all(map(word_starts, texts)), min(map(_rarity, texts))))
    kept: list[tuple[str, ...]] = []
    for texts in reversed(found):
        if not any(_implies(one, texts) for one in kept):
            kept.append(texts)
    return (*kept[:1], *(tuple(one.removeprefix(WORD) for one in more) for more in kept[1:]))


def _implies(texts: Iterable[str], others: Iterable[str]) -> bool:
    """Tell whether a text with one of some literals surely has one of the others."""
    bare = [other.removeprefix(WORD) for other in others]
    return all(any(one in text for one in bare) for text in texts)


def _length(literal: str) -> int:
    return len(literal.removeprefix(WORD))


def _rarity(literal: str) -> int:
    """Prefer numbers, because words such as `error` are in most lines that are read."""
    bare = literal.removeprefix(WORD)
    return len(bare) + 10 * any(map(str.isdigit, bare)) - 10 * (bare.strip().lower() in COMMON)


Weigh = Callable[[str], int]


def _best(tree: Any, weigh: Weigh = _length, begins: bool = False) -> set[str]:
    """Of the parts that a match must contain, return the one with the longest texts."""
    found = _needed(tree, weigh, begins)
    return max(found, key=lambda texts: min(map(weigh, texts)), default=set())


def _is_letter(code: int) -> bool:
    return chr(code).isalnum() or chr(code) == "_"


def _begins_after(kind: Any, value: Any, begins: bool) -> bool:
    """Tell whether what follows a part of a pattern surely begins a word."""
    if kind is kinds.AT:
        return begins or value is kinds.AT_BOUNDARY
    if kind in (kinds.ASSERT, kinds.ASSERT_NOT):
        return begins
    if kind in regex_cost.REPEATS:
        return (begins or value[0] > 0) and _ends_word(value[2])
    return kind is kinds.SUBPATTERN and _ends_word(value[3])


def _ends_word(tree: Any) -> bool:
    """Tell whether a part of a pattern ends with something that is in no word."""
    if not len(tree):
        return False
    kind, value = tree[-1]
    if kind is kinds.LITERAL:
        return not _is_letter(value)
    if kind is kinds.SUBPATTERN:
        return _ends_word(value[3])
    return kind is kinds.BRANCH and all(map(_ends_word, value[1]))


def _lead(tree: Any) -> str:
    """Return the literal that a part begins with."""
    literals = itertools.takewhile(lambda one: one[0] is kinds.LITERAL, tree)
    return "".join(chr(value) for _, value in literals)


def _needed(tree: Any, weigh: Weigh, begins: bool) -> Iterator[set[str]]:
    """Yield each part that a match must contain, as the set of its alternative texts."""
    run = mark = ""
    for kind, value in tree:
        if kind is kinds.LITERAL:
            if not run:
                mark = WORD if begins else ""
            run += chr(value)
            begins = not _is_letter(value)
            continue
        if len(run) >= SHORT:
            yield {mark + run}
        if kind is kinds.BRANCH and run and weigh is _rarity:
            joined = {mark + run + _lead(one) for one in value[1]}
            if min(len(one.removeprefix(WORD)) for one in joined) >= SHORT:
                yield joined  # the parser has taken out what the alternatives begin with
        run = ""
        if kind is kinds.SUBPATTERN and not value[1] and not value[2]:
            yield from _needed(value[3], weigh, begins)
        elif kind is kinds.ASSERT and value[0] > 0:
            yield from _needed(value[1], weigh, False)
        elif kind is kinds.BRANCH:
            ways = [_best(one, weigh, begins) for one in value[1]]
            if all(ways):
                yield set().union(*ways)
        elif kind in regex_cost.REPEATS and value[0] > 0:
            yield from _needed(value[2], weigh, False)
        begins = _begins_after(kind, value, begins)
    if len(run) >= SHORT:
        yield {mark + run}
