"""Count the failures of each place that no rule describes, and judge how bad they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from hermes_doctor.core.lazy import EMPTY
from hermes_doctor.core.model import DATA, MODEL, PLATFORM, Severity
from hermes_doctor.diagnosis.plugins.log_causes.place import GIVEN_UP, LOST, RETRIED
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place, Reading, Success
from hermes_doctor.diagnosis.plugins.log_rules.blame import (
    CONNECTION,
    Blame,
    Key,
    cause_words,
    key_of,
)
from hermes_doctor.diagnosis.plugins.log_rules.incident import DAY, Incident, OpenIncident
from hermes_doctor.diagnosis.plugins.log_rules.matcher import MATCH, Match
from hermes_doctor.diagnosis.plugins.log_rules.rates import NextChange
from hermes_doctor.diagnosis.plugins.log_rules.rule import LinePattern, Rule
from hermes_doctor.hermes.logs.entry import LogEntry

HOUR = 3600.0
WITHOUT_PEOPLE = ("cron", "kanban", "update", "memory", "plugins")
"""Parts that fail without a person who would try again, so one error is all there is."""
NETWORK = "network"
"""The family of causes which say that a connection does not exist."""
WAYS_IN = ("connect", "log in", "start")
"""Without these, a place does nothing else."""
ONCE = ("start",)
"""What is tried once in a life of the gateway, so that one line says that it fails."""
ANSWERS = "model"
"""The place whose calls answer messages: if it gives up once, somebody got no answer."""
SILENCING = {
    "platform": (*CONNECTION, "send"),
    "model": ("call the model", "connect", "log in"),
    "data": ("save",),
}
"""What people notice at once if it fails, by part."""


class Failing(OpenIncident):
    """The lines about one place and what it tried."""

    named: Blame
    """The most basic cause that the lines name."""
    operation = ""
    """What the line with that cause says was tried."""
    ended_badly = False
    """Whether a line says that Hermes gave up or lost something."""
    unruled = False
    """Whether no rule describes some of the lines."""
    judged = True
    """Whether each line with a cause has a rule about this cause, which knows how bad it is."""
    serious = False
    """Whether a line is more than a warning."""
    other_way = True
    """Whether Hermes tries another way after each of the lines, so nothing has to be lost."""
    relapses = 0
    """How often it began again shortly after a success."""
    ended = 0.0
    """When it was over for the last time."""

    @property
    def lasts(self) -> bool:
        """Whether its cause does not pass by itself."""
        return not self.named.cause.transient

    @property
    def spread(self) -> float:
        """Seconds from the first line to the last one."""
        return self.times[-1] - self.first

    @property
    def forgotten(self) -> float:
        """Seconds after the last line from which on it does not count; more if lines are rare."""
        pause = 3 * self.spread / max(1, self.count - 1)
        return max(DAY if self.lasts else 6 * HOUR, pause)

    def is_silencing(self, place: Place) -> bool:
        """Tell whether people notice it at once."""
        return self.operation in SILENCING.get(place.part, ())

    def is_often(self, place: Place, *, settled: bool) -> bool:
        """Tell whether it failed so often that it is no hiccup.

        What is tried once and cannot pass by itself needs one line.
        """
        if not self.lasts:
            return self.count >= 3 and self.spread >= HOUR / 6
        once = settled and place.part == "platform" and self.operation in WAYS_IN
        return self.count >= 2 or self.operation in ONCE or once


def beside_successes(place: Place, failing: Failing) -> Severity | None:
    """Judge a failure of a place where something else has succeeded since."""
    if not failing.unruled:
        return None
    if failing.lasts and (
        failing.count >= 3 or (failing.is_silencing(place) and failing.ended_badly)
    ):
        return Severity.WARNING
    return Severity.INFO if failing.lasts or failing.count >= 10 else None


def beside_rules(place: Place, failing: Failing, *, settled: bool) -> Severity | None:
    """Judge a failure whose lines have rules, which did not find them often enough."""
    if not failing.is_silencing(place):
        return None
    often = failing.is_often(place, settled=settled)
    if failing.operation in WAYS_IN and often and failing.spread >= HOUR:
        return Severity.ERROR
    again = failing.count >= 2 and failing.spread >= HOUR
    once = failing.lasts and failing.serious and settled
    return Severity.WARNING if once or often or again else None


def without_rules(key: Key, failing: Failing, *, settled: bool, worked: bool) -> Severity | None:
    """Judge a failure of which only place and cause are known.

    `settled`: whether it is over for long enough that nothing comes after it by itself; `worked`:
    whether the place has worked before.
    """
    place, silencing = key[0], failing.is_silencing(key[0])
    often = failing.is_often(place, settled=settled)
    no_answer = failing.ended_badly and (failing.count >= 2 or place.name == ANSWERS)
    if silencing and (often or no_answer):
        sure = _is_cut_off(key, failing) or (worked and not failing.other_way)
        return Severity.ERROR if sure else Severity.WARNING
    if failing.ended_badly or (often and (failing.lasts or failing.count >= 5)):
        return Severity.WARNING
    once = failing.lasts and failing.serious and settled
    if once and (silencing or place.part in WITHOUT_PEOPLE):
        return Severity.WARNING
    return Severity.INFO if failing.lasts else None


def _is_cut_off(key: Key, failing: Failing) -> bool:
    """Tell whether nothing can arrive: the model, a way in, or a connection does not work."""
    if key[0].name == ANSWERS or failing.operation in WAYS_IN:
        return True
    return key[1] == CONNECTION[0] and failing.named.cause.family == NETWORK


WINDOW = 3 * DAY
MOST = 300
"""Different failures that are counted."""
STARTING = 120.0
"""Seconds before a start is noted in which lines may belong to it."""
RELAPSE, MOST_RELAPSES = 30.0, 6
"""A connection that fails again so many seconds after it was made did not work; how often that is
normal."""
SERIOUS = ("ERROR", "CRITICAL")
SETTLED = HOUR / 6
"""After so many seconds without a success, a part that failed once counts as not working."""
OPTIONAL = ("tools", "plugins")
"""The parts that work with files and programs of the operator, not with those of Hermes."""
AT_ONCE = 6 * 3600.0
"""How long ago the last line of a cause with a severity of its own may be."""
EFFECTS = {
    "platform": (PLATFORM, "Nobody there gets an answer while this lasts."),
    "model": (MODEL, "Messages fail while this lasts."),
    "data": (DATA, "New messages are not saved while this lasts."),
}
"""What a failure does to the bot, by part: the part in the states, and a sentence."""


Reported = tuple[Place, str]
"""A place and the code of what a rule reports about it."""


class Failures:
    """The failures that go on."""

    def __init__(
        self,
        next_change: NextChange,
        worked: Mapping[Place, float],
        checks: Mapping[str, Sequence[str]] = EMPTY,
    ) -> None:
        """`worked`: when places last did anything with success, kept up to date by the caller.

        `checks`: the checks that examine what a code is about, by code.
        """
        self.next_change, self.now = next_change, next_change.now
        self._checks = checks
        self.dropped = 0
        self._worked = worked
        self._open: dict[Key, Failing] = {}
        self._ended: dict[Key, Failing] = {}
        """Connections that failed and were made again."""

    @property
    def go_on(self) -> bool:
        """Whether anything fails."""
        return bool(self._open)

    @property
    def are_known(self) -> bool:
        """Whether anything fails, or is a connection that failed and was made again."""
        return bool(self._open or self._ended)

    def add(self, entry: LogEntry, reading: Reading, codes: Collection[str] = ()) -> None:
        """Count a line that names a cause, or goes on about a place that fails.

        `codes`: those of the rules that describe the line.
        """
        if reading.outcome == "recovered" or entry.at < self.now - WINDOW:
            return
        key, cause = key_of(reading), reading.cause
        if key is None:
            return
        failing = self._open.get(key) or self._again(key, entry.at)
        if failing is None and (cause is None or len(self._open) >= MOST):
            self.dropped += cause is not None
            return
        if failing is None:
            failing = self._open[key] = Failing(_NO_RULE, place_key(key[0]), self.now)
        if cause is not None and (failing.count == 0 or cause.rank <= failing.named.cause.rank):
            failing.named = Blame(cause, key[0], reading.fields, key=key)
            failing.operation = reading.operation
        failing.ended_badly |= reading.outcome in (GIVEN_UP, LOST)
        failing.unruled |= not codes
        failing.judged = failing.judged and (cause is None or any(map(cause.means, codes)))
        failing.other_way &= reading.outcome == RETRIED
        failing.serious |= entry.level in SERIOUS
        words = reading.words or key[0].label
        failing.take(Match(failing.rule, MATCH, entry, failing.named.fields, words))

    def _again(self, key: Key, at: float) -> Failing | None:
        """Return a failure that was over for a short time only."""
        failing = self._ended.pop(key, None)
        if failing is None or at - failing.ended > RELAPSE:
            return None
        failing.relapses += 1
        self._open[key] = failing
        return failing

    def succeed(self, success: Success, at: float) -> bool:
        """End what works again, but a connection must also last; return whether there was any."""
        before = len(self._open)
        for key in [key for key in self._open if key[0] == success.place]:
            tried = CONNECTION if key[1] == CONNECTION[0] else (key[1],)
            if not success.operations or not set(tried).isdisjoint(success.operations):
                failing = self._open.pop(key)
                failing.ended = at
                if key[1] == CONNECTION[0] and key[0].part == "platform":
                    self._ended[key] = failing
        return len(self._open) < before

    def end(self, key: Key) -> None:
        """End a failure that is over."""
        self._open.pop(key, None)

    def gateway_started(self, at: float) -> None:
        """End what was before the start, but not what the start itself reported."""
        for key in [key for key, one in self._open.items() if one.times[-1] < at - STARTING]:
            del self._open[key]
        self._ended.clear()

    def blame(self, key: Key) -> Blame | None:
        """Return the cause of a failure that goes on."""
        failure = self._open.get(key)
        return failure.named if failure else None

    def incidents(
        self,
        wanted: Mapping[Key, Rule],
        reported: Mapping[Reported, Severity] = EMPTY,
    ) -> Iterator[Incident]:
        """Yield the failures that go on, if they matter.

        `wanted`: those which explain what a rule reports. They are as severe as that at least.
        `reported`: what rules report in better words, and up to which severity that is enough.
        """
        everywhere: dict[str, list[Incident]] = {}
        for key, failing in (*self._open.items(), *self._unstable()):
            incident = self._incident(key, failing, wanted.get(key))
            if incident is None:
                continue
            other = reported.get((key[0], failing.named.code))
            severity = Severity(incident.rule.severity)
            if other and key not in wanted and worse(other, severity) is other:
                continue
            if failing.named.cause.severity and key[0].part not in OPTIONAL:
                everywhere.setdefault(failing.named.cause.name, []).append(incident)
            else:
                yield incident
        yield from map(_joined, everywhere.values())

    def _incident(self, key: Key, failing: Failing, symptom: Rule | None) -> Incident | None:
        """Return the incident of a failure, if it matters; `symptom`: the rule that it explains."""
        place, cause = key[0], failing.named.cause
        severity = self._severity(key, failing)
        if symptom:
            severity = worse(severity or Severity.INFO, Severity(symptom.severity))
        if severity is None:
            return None
        rule = rule_of(failing.named, place)._replace(severity=severity.value)
        checks = cause.unless_ok or self._checks.get(rule.code, ())
        rule = rule._replace(
            unless_ok=symptom.unless_ok if symptom and not cause.unless_ok else checks
        )
        if cause.severity and severity.rank <= Severity(cause.severity).rank:
            rule = rule._replace(fix=cause.fix or None)
        if severity.rank <= Severity.ERROR.rank and place.part in EFFECTS and not symptom:
            part, sentence = EFFECTS[place.part]
            detail = " ".join(filter(None, (sentence, rule.detail)))
            rule = rule._replace(detail=detail, effect=(part, cause_words(cause, {})))
        incident = failing.to_incident(cleared_at=None)
        return incident._replace(rule=rule, fields={**incident.fields, **failing.named.fields})

    def _unstable(self) -> Iterator[tuple[Key, Failing]]:
        """Yield the connections that exist again, but never last."""
        for key, failing in self._ended.items():
            if failing.relapses < MOST_RELAPSES:
                continue
            self.next_change.note_moments([failing.ended + RELAPSE])
            if self.now - failing.ended <= RELAPSE:
                yield key, failing

    def _severity(self, key: Key, failing: Failing) -> Severity | None:
        """Judge a failure by what its place does since, or by its cause if that is worse."""
        severity, cause = self._by_place(key, failing), failing.named.cause
        if failing.judged or not cause.severity or failing.count < cause.lines:
            return severity
        if key[0].part in OPTIONAL:
            return severity
        self.next_change.note_moments([failing.times[-1] + AT_ONCE])
        if self.now - failing.times[-1] > AT_ONCE:
            return severity
        return worse(severity or Severity.INFO, Severity(cause.severity))

    def _by_place(self, key: Key, failing: Failing) -> Severity | None:
        """Judge a failure by what it does to people now; None if it does not matter."""
        last = failing.times[-1]
        self.next_change.note_moments([last + failing.forgotten, last + SETTLED])
        if self.now - last > failing.forgotten:
            return None
        if failing.relapses >= MOST_RELAPSES:
            return Severity.WARNING
        worked = self._worked.get(key[0])
        if worked is not None and worked > failing.first:
            return beside_successes(key[0], failing)
        settled = self.now - last >= SETTLED
        if not failing.unruled:
            return beside_rules(key[0], failing, settled=settled)
        return without_rules(key, failing, settled=settled, worked=worked is not None)


def _joined(same: list[Incident]) -> Incident:
    """Return one incident for a cause of the machine or of the data that several places report."""
    last = max(same, key=lambda one: one.last)
    rule = min((incident.rule for incident in same), key=lambda rule: Severity(rule.severity).rank)
    quotes = sorted(
        (quote for open_incident in same for quote in open_incident.quotes),
        key=lambda q: q.entry.at,
    )
    title = rule.title.partition(": ")[2]
    if len(same) > 1:
        rule = rule._replace(title=title, id=f"cause/{rule.id.rpartition('/')[2]}")
    return last._replace(
        rule=rule._replace(only_set_up=False),
        key=last.key if len(same) == 1 else {},
        first=min(one.first for one in same),
        number=sum(one.number for one in same),
        quotes=tuple(quotes),
    )


def worse(one: Severity, other: Severity) -> Severity:
    """Return the worse of two severities."""
    return min(one, other, key=lambda severity: severity.rank)


def place_key(place: Place) -> dict[str, str]:
    """Return the field that distinguishes the incidents of a place."""
    return {"platform" if place.part == "platform" else "name": place.name}


def rule_of(blame: Blame, place: Place) -> Rule:
    """Return the rule of a failure that has none of its own."""
    return _NO_RULE._replace(
        id=f"cause/{place.name}/{blame.cause.name}",
        code=blame.code,
        title=blame.title,
        cleared_by=[_ENDS] if place.part == "platform" else (),
        detail=blame.detail,
        next=blame.cause.advice,
        only_set_up=place.part == "platform",
    )


_ENDS = LinePattern("", (), "INFO", ["gateway"])
"""Where lines about platforms that work are: the findings say if that log does not go back far."""
_NO_RULE = Rule("cause", "", Severity.WARNING.value, "", LinePattern("", ()), window=WINDOW)
