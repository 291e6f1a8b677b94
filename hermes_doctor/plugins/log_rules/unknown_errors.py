"""Lines that no rule describes and that name no known cause: shown, not swallowed.

The rule with `unknown: true` says how they are reported. Its group `reason` takes the first words
of a line, which are Hermes' own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import Severity
from hermes_doctor.plugins.log_causes.place import GIVEN_UP, LOST, RECOVERED
from hermes_doctor.plugins.log_causes.reading import Place, Reading
from hermes_doctor.plugins.log_rules.failures import SILENCING, STARTING, place_key
from hermes_doctor.plugins.log_rules.incident import Incident, OpenIncident
from hermes_doctor.plugins.log_rules.matcher import MATCH, MOST as LONGEST, Match
from hermes_doctor.plugins.log_rules.rule import Rule

MOST, SHOWN = 300, 3
"""Different lines that are counted, and that are reported."""
_NUMBERS = re.compile(r"\d+")


class UnknownErrors:
    """Counts what nobody knows, by place and first words."""

    def __init__(self, rule: Rule, now: float) -> None:
        self.rule = rule
        self.now = now
        self._pattern = re.compile(rule.line.pattern)
        self._open: dict[tuple[Place, str], OpenIncident] = {}
        self._felt: set[tuple[Place, str]] = set()
        """Those whose lines say that Hermes gave up or lost something."""

    def add(self, entry: LogEntry, reading: Reading) -> None:
        """Count a line."""
        place = reading.place
        if place is None or entry.at < self.now - self.rule.window:
            return
        if reading.outcome == RECOVERED:
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
        if reading.outcome in (GIVEN_UP, LOST):
            self._felt.add(key)
        fields = {"name": place.label, "reason": words}
        one.take(Match(one.rule, MATCH, entry, fields, words))

    def succeed(self, place: Place) -> None:
        """Forget the lines of a place that works."""
        for key in [key for key in self._open if key[0] == place]:
            del self._open[key]
            self._felt.discard(key)

    def gateway_started(self, at: float) -> None:
        """Forget what was before the start, but not what the start itself reported."""
        for key in [key for key, one in self._open.items() if one.times[-1] < at - STARTING]:
            del self._open[key]

    def incidents(self) -> Iterator[Incident]:
        """Yield the most frequent ones that repeat."""
        often = [(key, one) for key, one in self._open.items() if one.reached]
        often.sort(key=lambda found: (not self._is_felt(found[0]), -found[1].count, found[1].first))
        for key, one in often[:SHOWN]:
            incident = one.to_incident(cleared_at=None)
            if not self._is_felt(key):
                rule = incident.rule._replace(severity=Severity.INFO.value)
                incident = incident._replace(rule=rule)
            yield incident

    def _is_felt(self, key: tuple[Place, str]) -> bool:
        """Tell whether people notice it: something is lost where they talk to the bot."""
        return key in self._felt and key[0].part in SILENCING

    def _rule(self, place: Place, words: str) -> Rule:
        return self.rule._replace(
            id=f"{self.rule.id}/{place.name}/{words}", only_set_up=place.part == "platform"
        )
