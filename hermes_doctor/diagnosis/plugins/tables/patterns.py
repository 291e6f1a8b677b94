"""Check the regular expressions of rules, and find the literals that every match contains."""

from __future__ import annotations

import itertools
import re
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.word_index import WORD, word_starts

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
    if has_nested_repeats(tree):
        yield "repeats a repetition or a choice, which can take very long"
    elif match_ways(tree, pattern) > MOST:
        yield "can match a line in too many ways; use fewer long repetitions, or begin with `^`"
    if ends_with_rest(tree):
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
    if kind in REPEATS:
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
        elif kind in REPEATS and value[0] > 0:
            yield from _needed(value[2], weigh, False)
        begins = _begins_after(kind, value, begins)
    if len(run) >= SHORT:
        yield {mark + run}
