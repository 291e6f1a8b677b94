"""Which lines of which rules an entry of a log matches."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from hermes_doctor.logs.entry import Entry
from hermes_doctor.signatures.rule import LEVELS, Line, Rule
from hermes_doctor.values import NamedTuple

MOST = 4000
"""Characters of a message that are looked at: a pattern may not take for ever on a long one."""
_RANKS = {level: rank for rank, level in enumerate(LEVELS)}
MATCH, FOLLOW, CLEAR = "match", "follow", "clear"


class Match(NamedTuple):
    """An entry that a line of a rule is about."""

    rule: Rule
    role: str
    """match: what the rule is about; follow: what must come after; clear: it is over."""
    entry: Entry
    fields: Mapping[str, str]
    quote: str
    """The part that the pattern matched: all that may be shown of the line."""


class _Candidate(NamedTuple):
    rule: Rule
    role: str
    line: Line


class _Candidates(NamedTuple):
    first: list[_Candidate]
    """Lines that rules are about."""
    after: list[_Candidate]
    """Lines that follow on them, or end them."""


class Matcher:
    """All rules, ready to be asked; a pattern is compiled when one of its literals is seen."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.lines: dict[tuple[str, str], list[_Candidate]] = {}
        """By the kind of source and the name of a logger; empty: any."""
        for rule in rules:
            self._add(_Candidate(rule, MATCH, rule.line))
            if rule.followed_by:
                self._add(_Candidate(rule, FOLLOW, rule.followed_by))
            for line in rule.cleared_by:
                self._add(_Candidate(rule, CLEAR, line))
        self.known: dict[tuple[str, str, str], _Candidates] = {}

    def _add(self, one: _Candidate) -> None:
        for name in one.line.loggers or ("",):
            self.lines.setdefault((one.rule.source, name), []).append(one)

    def candidates(self, kind: str, level: str, logger: str) -> _Candidates:
        """What entries of this kind, level and logger could match."""
        key = (kind, level, logger)
        found = self.known.get(key)
        if found is None:
            found = self._candidates(kind, level, logger)
            if len(self.known) < 10_000:  # a log may hold any number of names
                self.known[key] = found
        return found

    def _candidates(self, kind: str, level: str, logger: str) -> _Candidates:
        rank = _RANKS.get(level, len(_RANKS))
        found = list(self.lines.get((kind, ""), ()))
        name = logger
        while name:
            found += self.lines.get((kind, name), ())
            name = name.rpartition(".")[0]
        found = [one for one in found if _RANKS[one.line.level] <= rank]
        first = [one for one in found if one.role == MATCH]
        return _Candidates(first, [one for one in found if one.role != MATCH])

    def wanted(self, level: str, logger: str) -> bool:
        """Whether entries of a log file of this level and logger could match anything."""
        return any(self.candidates("log", level, logger))

    def ask(self, entry: Entry, begun: Container[str]) -> list[Match]:
        """Every line of every rule that the entry matches.

        What follows on something or ends it is only looked for once that has `begun`, by the ids
        of the rules: most lines are such that would end what never was.
        """
        first, after = self.candidates(entry.kind, entry.level, entry.logger)
        found = first
        if begun and after:
            found = first + [one for one in after if one.rule.id in begun]
        return _matches(entry, found) if found else []


def _matches(entry: Entry, candidates: list[_Candidate]) -> list[Match]:
    found = []
    text = entry.text
    whole = "\n".join((text, *entry.more)) if entry.more else text
    for rule, role, line in candidates:
        place = whole if line.traceback else text
        for literal in line.literals or ("",):
            if literal in place:
                break
        else:
            continue
        if match := _first(line, entry):
            fields = {name: value for name, value in match.groupdict().items() if value}
            found.append(Match(rule, role, entry, fields, match[0]))
    return found


def _first(line: Line, entry: Entry) -> re.Match[str] | None:
    """Where the pattern matches: in the message, or in one of the lines that follow it."""
    for text in (entry.text, *entry.more) if line.traceback else (entry.text,):
        if match := _compiled(line.pattern).search(text[:MOST]):
            return match
    return None


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    """`re` itself forgets all of them when there are more than a few hundred."""
    found = _patterns.get(pattern)
    if found is None:
        found = _patterns[pattern] = re.compile(pattern)
    return found
