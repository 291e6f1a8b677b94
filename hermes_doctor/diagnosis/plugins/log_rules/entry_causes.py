"""What entries say beside the rules they match: causes, what works again, unknown errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from hermes_doctor.core.lazy import EMPTY, pattern
from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.plugins.log_causes.place import GIVEN_UP, LOST, RECOVERED
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place, Reader, Reading
from hermes_doctor.diagnosis.plugins.log_rules.blame import Blame, Blamer, Key
from hermes_doctor.diagnosis.plugins.log_rules.connections import Connections, Hanging, is_reported
from hermes_doctor.diagnosis.plugins.log_rules.failures import (
    SILENCING,
    STARTING,
    Failures,
    Reported,
    place_key,
)
from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident, OpenIncident
from hermes_doctor.diagnosis.plugins.log_rules.matcher import MATCH, MOST as LONGEST, Match
from hermes_doctor.diagnosis.plugins.log_rules.rates import NextChange
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule
from hermes_doctor.hermes.logs.entry import LogEntry

MOST, SHOWN = 300, 3
"""Different lines that are counted, and that are reported."""
_NUMBERS = pattern(r"\d+")
_ERRORS = ("ERROR", "CRITICAL")
FirstWords = tuple[str, str]
"""Logger and first words."""


OFTEN = 5
"""Errors of Hermes itself that repeat so often are a problem even if no effect can be seen."""
_HERMES = ("agent", "cron", "gateway", "hermes", "model_tools", "plugins", "run_agent", "tools")
"""How the loggers of Hermes itself begin; the others are libraries."""


class UnknownErrors:
    """Counts what nobody knows, by logger and first words."""

    def __init__(
        self,
        rule: Rule,
        now: float,
        reader: Reader,
        worked: Callable[[], Mapping[Place, float]],
    ) -> None:
        """`worked` returns when places last did anything with success."""
        self.rule = rule
        self.now = now
        self._reader = reader
        self._worked = worked
        self._pattern = pattern(rule.line.pattern)
        self._open: dict[FirstWords, OpenIncident] = {}
        self._earlier: set[FirstWords] | None = None
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
        incident = self._open.get(key)
        if incident is None:
            if len(self._open) >= MOST:
                return
            incident = self._open[key] = OpenIncident(self.rule, {}, self.now)
        incident.take(Match(self.rule, MATCH, entry, {"reason": words}, words))

    def gateway_started(self, at: float) -> None:
        """Forget what was before the start, but not what the start itself reported."""
        old = [key for key, one in self._open.items() if one.times[-1] < at - STARTING]
        self._earlier = {*(self._earlier or ()), *old}
        for key in old:
            del self._open[key]

    def last_times(self) -> Iterator[float]:
        """Yield when each one that repeats was last written; a success after that ends it."""
        return (one.times[-1] for one in self._open.values() if one.reached)

    def incidents(self) -> Iterator[Incident]:
        """Yield the most frequent ones that repeat, those with an effect first."""
        incidents = [
            incident for key, one in self._open.items() if (incident := self._incident(key, one))
        ]
        incidents.sort(key=lambda one: (Severity(one.rule.severity).rank, -one.number, one.first))
        yield from incidents[:SHOWN]

    def _incident(self, key: FirstWords, open_incident: OpenIncident) -> Incident | None:
        if not open_incident.reached:
            return None
        entries = [quote.entry for quote in (*open_incident.begin, *open_incident.end)]
        serious = all(entry.level in _ERRORS for entry in entries)
        if not serious and (self._earlier is None or key in self._earlier):
            return None
        readings = [self._reader.read(entry) for entry in entries]
        place = readings[-1].place
        if place is None or readings[-1].outcome == RECOVERED:
            return None
        if self._worked().get(place, 0.0) > open_incident.times[-1]:
            return None
        lost = any(reading.outcome in (GIVEN_UP, LOST) for reading in readings)
        felt = (lost and place.part in SILENCING) or (
            serious and open_incident.count >= OFTEN and key[0].startswith(_HERMES)
        )
        rule = self.rule._replace(
            id=f"{self.rule.id}/{place.name}/{key[1]}",
            severity=self.rule.severity if felt else Severity.INFO.value,
            only_set_up=place.part == "platform",
        )
        incident = open_incident.to_incident(cleared_at=None)
        fields = {**incident.fields, "name": place.label}
        return incident._replace(rule=rule, key=place_key(place), fields=fields)


SERIOUS = ("WARNING", "ERROR", "CRITICAL")
KINDS = ("log", "journal", "stderr")
"""The sources whose lines are read for causes; the others are records of their own kind."""


KIND, MOST_UNREAD = 32, 100
"""Characters at the start of a line that tell what kind it is, and the kinds that are kept."""
ANSWERING = "model"
"""The part whose successes show that the bot answers."""


class EntryCauses:
    """Reads the entries of a log, in order of time, with tables of causes and places."""

    def __init__(
        self,
        reader: Reader,
        rules: Iterable[Rule],
        unknown: Rule | None,
        symptoms: Collection[str],
        next_change: NextChange,
    ) -> None:
        """`unknown`: the rule about unknown errors; `symptoms`: codes that blame nothing."""
        self.reader = reader
        self._worked: dict[Place, float] = {}
        self._unread: dict[tuple[str, str], LogEntry] = {}
        """Entries that may show that something works, by logger and first characters."""
        checks = {rule.code: rule.unless_ok for rule in rules if rule.unless_ok}
        self.blamer = Blamer(reader.causes, symptoms)
        self._next_change, now = next_change, next_change.now
        self.failures = Failures(next_change, self._worked, checks)
        self._connections = Connections(reader, next_change)
        self._hanging = Hanging(reader, next_change)
        self._unknown = UnknownErrors(unknown, now, reader, self._caught_up) if unknown else None

    def is_read(self, level: str, logger: str, *, ends: bool) -> bool:
        """Tell whether entries of this level and logger matter; without `ends`, as failures."""
        return level in SERIOUS or (ends and self.reader.may_succeed(level, logger))

    def take(
        self, entry: LogEntry, matches: Sequence[Match]
    ) -> tuple[Reading | None, Sequence[Match]]:
        """Count an entry; return what it says, if it names a cause, and the matches that count."""
        if entry.kind not in KINDS:
            return None, matches
        if self.reader.may_succeed(entry.level, entry.logger):
            self._note_success(entry)
        if entry.level not in SERIOUS:
            return None, matches
        cause, _ = self.reader.cause_of(entry.text, entry.more)
        if cause is not None:  # that says more than a rule for unknown lines
            matches = [one for one in matches if one.role != MATCH or not one.rule.otherwise]
        codes = [match.rule.code for match in matches if match.role == MATCH]
        if cause is None and not codes and self._unknown:
            self._unknown.add(entry)
        if cause is None and not self.failures.go_on:
            return None, matches  # the place matters only for a failure
        reading = self.reader.read(entry)
        self._caught_up()
        self.failures.add(entry, reading, codes)
        return reading, matches

    def _note_success(self, entry: LogEntry) -> None:
        """Read what works again; if nothing fails, only the last entries of each kind count."""
        self._connections.note(entry)
        self._hanging.note(entry)
        if not self.failures.go_on:
            self._unread[entry.logger, entry.text[:KIND]] = entry
            if len(self._unread) > MOST_UNREAD:
                self._caught_up()
            return
        for success in self.reader.successes(entry):
            self._worked[success.place] = entry.at
            if self.failures.succeed(success, entry.at):
                self._next_change.note_line(entry.at)

    def _caught_up(self) -> Mapping[Place, float]:
        """Read the last successes; return when each place last did anything with success."""
        for entry in self._unread.values():
            for success in self.reader.successes(entry):
                at = max(entry.at, self._worked.get(success.place, 0.0))
                self._worked[success.place] = at
        self._unread.clear()
        return self._worked

    def successes_since(self) -> float:
        """Return since when lines about success can change what goes on.

        How bad a failure is depends on whether its place has ever worked.
        """
        if self.failures.are_known:
            return -math.inf
        since = self._connections.since
        return min([since, *self._unknown.last_times()]) if self._unknown else since

    def with_reason(self, incident: Incident, blame: Blame) -> Incident:
        """Return an incident with the reason that its lines name."""
        shown = incident.fields.get("reason", "")
        rule = self.blamer.with_reason(incident.rule, blame, shown)
        return incident._replace(rule=rule, fields={**blame.fields, **incident.fields})

    def gateway_started(self, at: float) -> None:
        """Note that the gateway was started."""
        self.failures.gateway_started(at)
        self._connections.gateway_started()
        self._hanging.gateway_started()
        if self._unknown:
            self._unknown.gateway_started(at)

    def explain(self, incident: Incident, blame: Blame, wanted: dict[Key, Rule]) -> Incident:
        """Say what causes an incident, if that goes on; note in `wanted` that it is reported.

        What may pass by itself and was named once is no error if the bot has answered since.
        """
        rule = incident.rule
        severity = Severity(rule.severity)
        passing = blame.cause.transient and incident.number == 1
        if passing and severity.rank < Severity.WARNING.rank and self._answered(incident.last):
            severity = Severity.WARNING
            rule = rule._replace(severity=severity.value)
            incident = incident._replace(rule=rule)
        cause = self.failures.blame(blame.key) if blame.key else None
        if blame.key is None or cause is None or severity is Severity.INFO:
            return incident
        if cause.cause.means(rule.code):
            return incident
        other = wanted.get(blame.key)
        if other is None or severity.rank < Severity(other.severity).rank:
            wanted[blame.key] = rule
        return incident._replace(caused_by=cause.code)

    def _answered(self, since: float) -> bool:
        """Tell whether the bot has answered a message since then."""
        return any(at > since for place, at in self._worked.items() if place.part == ANSWERING)

    def reports(self, incident: OpenIncident, rule: Rule) -> Iterator[tuple[Reported, Severity]]:
        """Yield what an incident of a rule reports, and up to which severity that is enough.

        A rule about the cause of the failure knows how severe that is, so it is always enough.
        """
        if incident.failure is None:
            return
        yield (incident.failure[0], rule.code), Severity(rule.severity)
        cause = self.failures.blame(incident.failure)
        if cause is None or (incident.blame and incident.blame.beside):
            return
        if incident.blame or cause.cause.means(incident.rule.code):
            yield (incident.failure[0], cause.code), Severity.CRITICAL

    def loops(self, others: Iterable[Incident]) -> Iterator[Incident]:
        """Yield the connections that never last or never come, unless others are about them."""
        known = {other.key.get("platform", "").lower() for other in others if is_reported(other)}
        for incident in (*self._hanging.incidents(), *self._connections.incidents()):
            if incident.key["platform"] not in known:
                known.add(incident.key["platform"])
                yield incident

    def incidents(
        self,
        wanted: Mapping[Key, Rule],
        reported: Mapping[Reported, Severity] = EMPTY,
    ) -> Iterator[Incident]:
        """Yield what goes on: what no rule describes, and the wanted causes of others.

        `reported`: what rules report, and up to which severity that is enough.
        """
        if self.failures.go_on:
            self._caught_up()
        for at in self._worked.values():
            self._next_change.note_line(at)
        yield from self.failures.incidents(wanted, reported)
        if self._unknown:
            yield from self._unknown.incidents()


def split_unknown(rules: Iterable[Rule]) -> tuple[list[Rule], Rule | None]:
    """Return the rules for certain lines, and the one about unknown errors."""
    rules = list(rules)
    unknown = next((rule for rule in rules if rule.unknown), None)
    return [rule for rule in rules if not rule.unknown], unknown
