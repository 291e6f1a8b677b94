"""Lines that no rule describes and that name no known cause: shown, not swallowed.

The rule with `unknown: true` says how they are reported. Its group `reason` takes the first words
of a line, which are Hermes' own. A warning is reported only if it is new since the last start:
what a bot has always written is normal for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import Severity
from hermes_doctor.plugins.log_causes.place import GIVEN_UP, LOST, RECOVERED
from hermes_doctor.plugins.log_causes.reading import Place
from hermes_doctor.plugins.log_rules.blame import EntryReader
from hermes_doctor.plugins.log_rules.failures import SILENCING, STARTING, place_key
from hermes_doctor.plugins.log_rules.incident import Incident, OpenIncident
from hermes_doctor.plugins.log_rules.matcher import MATCH, MOST as LONGEST, Match
from hermes_doctor.plugins.log_rules.rule import Rule

MOST, SHOWN = 300, 3
"""Different lines that are counted, and that are reported."""
_NUMBERS = re.compile(r"\d+")
_SERIOUS = ("ERROR", "CRITICAL")
Key = tuple[str, str]
"""Logger and first words."""


class UnknownErrors:
    """Counts what nobody knows, by logger and first words."""

    def __init__(
        self, rule: Rule, now: float, reader: EntryReader, worked: Mapping[Place, float]
    ) -> None:
        """`worked`: when places last did anything with success, kept up to date by the caller."""
        self.rule = rule
        self.now = now
        self._reader = reader
        self._worked = worked
        self._pattern = re.compile(rule.line.pattern)
        self._open: dict[Key, OpenIncident] = {}
        self._earlier: set[Key] | None = None
        """What was written before the last start; None if no start is known."""

    def add(self, entry: LogEntry) -> None:
        """Count a line."""
        if entry.at < self.now - self.rule.window:
            return
        match = self._pattern.search(entry.text[:LONGEST])
        if match is None:
            return
        words = match["reason"]
        key = entry.logger, _NUMBERS.sub("0", words)
        one = self._open.get(key)
        if one is None:
            if len(self._open) >= MOST:
                return
            one = self._open[key] = OpenIncident(self.rule, {}, self.now)
        one.take(Match(self.rule, MATCH, entry, {"reason": words}, words))

    def gateway_started(self, at: float) -> None:
        """Forget what was before the start, but not what the start itself reported."""
        old = [key for key, one in self._open.items() if one.times[-1] < at - STARTING]
        self._earlier = {*(self._earlier or ()), *old}
        for key in old:
            del self._open[key]

    def incidents(self) -> Iterator[Incident]:
        """Yield the most frequent ones that repeat, those with an effect first."""
        found = [made for key, one in self._open.items() if (made := self._incident(key, one))]
        found.sort(key=lambda one: (Severity(one.rule.severity).rank, -one.number, one.first))
        yield from found[:SHOWN]

    def _incident(self, key: Key, one: OpenIncident) -> Incident | None:
        if not one.reached:
            return None
        entries = [quote.entry for quote in (*one.begin, *one.end)]
        serious = all(entry.level in _SERIOUS for entry in entries)
        if not serious and (self._earlier is None or key in self._earlier):
            return None
        readings = [self._reader.read(entry) for entry in entries]
        place = readings[-1].place
        if place is None or readings[-1].outcome == RECOVERED:
            return None
        if self._worked.get(place, 0.0) > one.times[-1]:
            return None
        lost = any(reading.outcome in (GIVEN_UP, LOST) for reading in readings)
        felt = lost and place.part in SILENCING
        rule = self.rule._replace(
            id=f"{self.rule.id}/{place.name}/{key[1]}",
            severity=self.rule.severity if felt else Severity.INFO.value,
            only_set_up=place.part == "platform",
        )
        made = one.to_incident(cleared_at=None)
        fields = {**made.fields, "name": place.label}
        return made._replace(rule=rule, key=place_key(place), fields=fields)
