"""What entries say beside the rules they match: causes, what works again, unknown errors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import Severity
from hermes_doctor.plugins.log_causes.reading import Place, Reading
from hermes_doctor.plugins.log_rules.blame import Blame, Blamer, EntryReader, Key
from hermes_doctor.plugins.log_rules.failures import Failures
from hermes_doctor.plugins.log_rules.incident import Incident
from hermes_doctor.plugins.log_rules.matcher import MATCH, Match
from hermes_doctor.plugins.log_rules.rule import Rule
from hermes_doctor.plugins.log_rules.unknown_errors import UnknownErrors

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
        reader: EntryReader,
        rules: Iterable[Rule],
        unknown: Rule | None,
        symptoms: Collection[str],
        now: float,
    ) -> None:
        """`unknown`: the rule about unknown errors; `symptoms`: codes that blame nothing."""
        self.reader = reader
        self._worked: dict[Place, float] = {}
        self._unread: dict[tuple[str, str], LogEntry] = {}
        """Entries that may show that something works, by logger and first characters."""
        checks = {rule.code: rule.unless_ok for rule in rules if rule.unless_ok}
        self._blamer = Blamer(reader.causes, symptoms)
        self._failures = Failures(now, self._worked, checks)
        self._unknown = UnknownErrors(unknown, now, reader, self._worked) if unknown else None

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
        described = any(one.role == MATCH for one in matches)
        if cause is None and not described and self._unknown:
            self._unknown.add(entry)
        if cause is None and not self._failures.go_on:
            return None, matches  # the place matters only for a failure
        reading = self.reader.read(entry)
        self._catch_up()
        self._failures.add(entry, reading, described=described)
        return reading, matches

    def _note_success(self, entry: LogEntry) -> None:
        """Read what works again; if nothing fails, only the last entries of each kind count."""
        if not self._failures.go_on:
            self._unread[entry.logger, entry.text[:KIND]] = entry
            if len(self._unread) > MOST_UNREAD:
                self._catch_up()
            return
        for success in self.reader.successes(entry):
            self._worked[success.place] = entry.at
            self._failures.succeed(success)

    def _catch_up(self) -> None:
        """Read the last successes."""
        for entry in self._unread.values():
            for success in self.reader.successes(entry):
                at = max(entry.at, self._worked.get(success.place, 0.0))
                self._worked[success.place] = at
        self._unread.clear()

    def blame(self, reading: Reading, rule: Rule) -> Blame | None:
        """Return the cause that an entry names, if the rule does not say it."""
        return self._blamer.judge(reading, rule)

    def end(self, failure: Key) -> None:
        """Note that a failure is over, because the lines of a rule show that."""
        self._failures.end(failure)

    def gateway_started(self, at: float) -> None:
        """Note that the gateway was started."""
        self._failures.gateway_started(at)
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
        cause = self._failures.blame(blame.key) if blame.key else None
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

    def incidents(self, wanted: Mapping[Key, Rule]) -> Iterator[Incident]:
        """Yield what goes on: what no rule describes, and the wanted causes of others."""
        self._catch_up()
        yield from self._failures.incidents(wanted)
        if self._unknown:
            yield from self._unknown.incidents()


def split_unknown(rules: Iterable[Rule]) -> tuple[list[Rule], Rule | None]:
    """Return the rules for certain lines, and the one about unknown errors."""
    rules = list(rules)
    unknown = next((rule for rule in rules if rule.unknown), None)
    return [rule for rule in rules if not rule.unknown], unknown
