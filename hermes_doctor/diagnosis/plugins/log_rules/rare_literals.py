"""Choose the literals by which a line is looked up: those that the fewest lines of rules have.

The longest literal of `^Tool browser_\\w+ returned error` is in every line about a failed tool; by
that, the patterns about all tools would be compiled and tried for each of them. This is done when
the built-in rules are compiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.diagnosis.plugins.tables import patterns

SHORTEST = 5
"""Shorter literals are in many lines, even if no other pattern has them."""


def with_rare_literals(rules: Iterable[Rule]) -> list[Rule]:
    """Return the rules with the literals that the fewest of them have."""
    rules = list(rules)
    sets = {line.pattern: _sets(line) for rule in rules for line in rule.lines}
    count = Counter(one for found in sets.values() for one in {*_flat(found)})
    chosen = {pattern: _rarest(found, count) for pattern, found in sets.items()}

    def better(line: LinePattern) -> LinePattern:
        return line._replace(literals=chosen[line.pattern] or line.literals)

    return [rule.with_lines(better) for rule in rules]


def _sets(line: LinePattern) -> list[tuple[str, ...]]:
    """Return sets of literals of which one is in every line; the one that was chosen is first."""
    if line.exception or not line.literals:
        return [tuple(line.literals)]  # the exception is searched in a text that is made of lines
    literal_sets = [
        literal_set
        for literal_set in patterns.literal_sets(line.pattern)
        if len(min(literal_set, key=len)) >= SHORTEST
    ]
    return [tuple(line.literals), *literal_sets]


def _flat(sets: Iterable[Sequence[str]]) -> Iterable[str]:
    return (literal for one in sets for literal in one)


def _rarest(sets: Sequence[tuple[str, ...]], count: Mapping[str, int]) -> tuple[str, ...]:
    return min(sets, key=lambda one: sum(count[literal] for literal in one))
