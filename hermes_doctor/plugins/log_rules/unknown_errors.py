"""Lines that no rule describes and that name no known cause: shown, not swallowed.

The rule with `unknown: true` says how they are reported. Its group `reason` takes the first words
of a line, which are Hermes' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import Severity
from hermes_doctor.plugins.log_causes.reading import Place
from hermes_doctor.plugins.log_rules.failures import SILENCING, STARTING, place_key
from hermes_doctor.plugins.log_rules.incident import Incident, OpenIncident
from hermes_doctor.plugins.log_rules.matcher import MATCH, MOST as LONGEST, Match
from hermes_doctor.plugins.log_rules.rule import Rule

MOST, SHOWN = 300, 3
"""Different lines that are counted, and that are reported."""
_NUMBERS = re.compile(r"\d+")
_SERIOUS = ("ERROR", "CRITICAL")


class UnknownErrors:
    """Counts what nobody knows, by place and first words."""

    def __init__(self, rule: Rule, now: float, worked: Mapping[Place, float]) -> None:
        """`worked`: when places last did anything with success, kept up to date by the caller."""
        self.rule = rule
        self.now = now
        self._worked = worked
        self._pattern = re.compile(rule.line.pattern)
        self._open: dict[tuple[Place, str], OpenIncident] = {}

    def add(self, entry: LogEntry, place: Place) -> None:
        """Count a line."""
        if entry.at < self.now - self.rule.window:
            return
        match = self._pattern.search(entry.text[:LONGEST])
        if match is None:
            return
        words = match["reason"]
        key = place, _NUMBERS.sub("0", words)
        one = self._open.get(key)
        if one is None:
            if len(self._open) >= MOST:
                return
            rule = self._rule(place, key[1])
            one = self._open[key] = OpenIncident(rule, place_key(place), self.now)
        fields = {"name": place.label, "reason": words}
        one.take(Match(one.rule, MATCH, entry, fields, words))

    def succeed(self, place: Place) -> None:
        """Forget the lines of a place that works."""
        for key in [key for key in self._open if key[0] == place]:
            del self._open[key]

    def gateway_started(self, at: float) -> None:
        """Forget what was before the start, but not what the start itself reported."""
        for key in [key for key, one in self._open.items() if one.times[-1] < at - STARTING]:
            del self._open[key]

    def incidents(self) -> Iterator[Incident]:
        """Yield the most frequent ones that repeat."""
        often = [(place, one) for (place, _), one in self._open.items() if one.reached]
        often.sort(key=lambda found: (-self._is_felt(*found), -found[1].count, found[1].first))
        for place, one in often[:SHOWN]:
            incident = one.to_incident(cleared_at=None)
            if not self._is_felt(place, one):
                rule = incident.rule._replace(severity=Severity.INFO.value)
                incident = incident._replace(rule=rule)
            yield incident

    def _is_felt(self, place: Place, one: OpenIncident) -> bool:
        """Tell whether the place worked before these errors, and has not worked since."""
        serious = all(quote.entry.level in _SERIOUS for quote in (*one.begin, *one.end))
        return serious and place.part in SILENCING and place in self._worked

    def _rule(self, place: Place, words: str) -> Rule:
        return self.rule._replace(
            id=f"{self.rule.id}/{place.name}/{words}", only_set_up=place.part == "platform"
        )
