"""Which lines of which rules an entry of a log matches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from hermes_doctor.logs.entry import Entry
from hermes_doctor.signatures.rule import Line, Rule
from hermes_doctor.values import NamedTuple

MOST = 4000
"""Characters of a message that are looked at: a pattern may not take for ever on a long one."""
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


class Matcher:
    """All rules, ready to be asked; a pattern is compiled when its literal is first seen."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.lines: dict[str, list[_Candidate]] = {}
        for rule in rules:
            own = self.lines.setdefault(rule.source, [])
            own.append(_Candidate(rule, MATCH, rule.line))
            if rule.followed_by:
                own.append(_Candidate(rule, FOLLOW, rule.followed_by))
            own += [_Candidate(rule, CLEAR, line) for line in rule.cleared_by]
        self.known: dict[tuple[str, str, str], list[_Candidate]] = {}

    def candidates(self, kind: str, level: str, logger: str) -> list[_Candidate]:
        """What entries of this kind, level and logger could match."""
        key = (kind, level, logger)
        found = self.known.get(key)
        if found is None:
            lines = self.lines.get(kind, [])
            found = [one for one in lines if one.line.wants(level, logger)]
            if len(self.known) < 10_000:  # a log may hold any number of names
                self.known[key] = found
        return found

    def wanted(self, level: str, logger: str) -> bool:
        """Whether entries of a log file of this level and logger could match anything."""
        return bool(self.candidates("log", level, logger))

    def ask(self, entry: Entry) -> list[Match]:
        """Every line of every rule that the entry matches."""
        found = []
        for rule, role, line in self.candidates(entry.kind, entry.level, entry.logger):
            for text in (entry.text, *entry.more) if line.traceback else (entry.text,):
                if line.literal in text and (match := _search(line.pattern, text[:MOST])):
                    fields = {name: value for name, value in match.groupdict().items() if value}
                    found.append(Match(rule, role, entry, fields, match[0]))
                    break
        return found


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _compiled(pattern).search(text)


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(pattern: str) -> re.Pattern[str]:
    """`re` itself forgets all of them when there are more than a few hundred."""
    found = _patterns.get(pattern)
    if found is None:
        found = _patterns[pattern] = re.compile(pattern)
    return found
