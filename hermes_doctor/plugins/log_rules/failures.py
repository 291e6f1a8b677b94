"""What goes wrong at a place, whatever the rules say: what it tried, and why that failed.

A success of the same place and operation ends a failure. Time alone does not, as long as the place
has done nothing since: if a bot gets two messages a day and fails both, all of them fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hermes_doctor.lazy import EMPTY
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import DATA, MODEL, PLATFORM, Severity
from hermes_doctor.plugins.log_causes.reading import Place, Reading
from hermes_doctor.plugins.log_causes.success_reader import Success
from hermes_doctor.plugins.log_rules.blame import CONNECTION, Blame, Key, cause_words, key_of
from hermes_doctor.plugins.log_rules.incident import DAY, Incident, OpenIncident
from hermes_doctor.plugins.log_rules.matcher import MATCH, Match
from hermes_doctor.plugins.log_rules.rule import LinePattern, Rule

WINDOW = 3 * DAY
MOST = 300
"""Different failures that are counted."""
HOUR = 3600.0
STARTING = 120.0
"""Seconds before a start is noted in which lines may belong to it."""
WAYS_IN = ("connect", "log in", "start")
"""Without these, a place does nothing else."""
SILENCING = {
    "platform": (*CONNECTION, "send"),
    "model": ("call the model", "connect", "log in"),
    "data": ("save",),
}
"""What people notice at once if it fails, by part."""
EFFECTS = {
    "platform": (PLATFORM, "Nobody there gets an answer while this lasts."),
    "model": (MODEL, "Messages fail while this lasts."),
    "data": (DATA, "New messages are not saved while this lasts."),
}
"""What a failure does to the bot, by part: the part in the states, and a sentence."""


class _Failing(OpenIncident):
    """The lines about one place and what it tried."""

    said: Blame
    """The most basic cause that the lines name."""
    operation = ""
    """What the line with that cause says was tried."""
    ended_badly = False
    """Whether a line says that Hermes gave up or lost something."""
    unruled = False
    """Whether no rule describes some of the lines."""


class Failures:
    """The failures that go on."""

    def __init__(
        self, now: float, worked: Mapping[Place, float], checks: Mapping[str, Sequence[str]] = EMPTY
    ) -> None:
        """`worked`: when places last did anything with success, kept up to date by the caller.

        `checks`: the checks that examine what a code is about, by code.
        """
        self.now = now
        self._checks = checks
        self.dropped = 0
        self._worked = worked
        self._open: dict[Key, _Failing] = {}

    @property
    def go_on(self) -> bool:
        """Whether anything fails."""
        return bool(self._open)

    def add(self, entry: LogEntry, reading: Reading, *, described: bool) -> None:
        """Count a line that names a cause, or goes on about a place that fails."""
        if reading.outcome == "recovered" or entry.at < self.now - WINDOW:
            return
        key, cause = key_of(reading), reading.cause
        if key is None:
            return
        one = self._open.get(key)
        if one is None and (cause is None or len(self._open) >= MOST):
            self.dropped += cause is not None
            return
        if one is None:
            one = self._open[key] = _Failing(_NO_RULE, place_key(key[0]), self.now)
        if cause is not None and (one.count == 0 or cause.rank <= one.said.cause.rank):
            one.said = Blame(cause, key[0], reading.fields, key=key)
            one.operation = reading.operation
        one.ended_badly = one.ended_badly or reading.outcome in ("given up", "lost")
        one.unruled = one.unruled or not described
        words = reading.words or key[0].label
        one.take(Match(one.rule, MATCH, entry, one.said.fields, words))

    def succeed(self, success: Success) -> None:
        """End what works again."""
        for key in [key for key in self._open if key[0] == success.place]:
            tried = CONNECTION if key[1] == CONNECTION[0] else (key[1],)
            if not success.operations or not set(tried).isdisjoint(success.operations):
                del self._open[key]

    def end(self, key: Key) -> None:
        """End a failure that is over."""
        self._open.pop(key, None)

    def gateway_started(self, at: float) -> None:
        """End what was before the start, but not what the start itself reported."""
        for key in [key for key, one in self._open.items() if one.times[-1] < at - STARTING]:
            del self._open[key]

    def blame(self, key: Key) -> Blame | None:
        """Return the cause of a failure that goes on."""
        one = self._open.get(key)
        return one.said if one else None

    def incidents(self, wanted: Mapping[Key, Rule]) -> Iterator[Incident]:
        """Yield the failures that go on, if they matter.

        `wanted`: those which explain what a rule reports. They are as severe as that at least.
        """
        for key, one in self._open.items():
            place, severity = key[0], self._severity(key, one)
            symptom = wanted.get(key)
            if symptom:
                severity = worse(severity or Severity.INFO, Severity(symptom.severity))
            if severity is None:
                continue
            rule = _rule(one.said, place)._replace(severity=severity.value)
            checks = symptom.unless_ok if symptom else self._checks.get(rule.code, ())
            rule = rule._replace(unless_ok=checks)
            if severity.rank <= Severity.ERROR.rank and place.part in EFFECTS and not symptom:
                part, sentence = EFFECTS[place.part]
                words = cause_words(one.said.cause, {})
                detail = " ".join(filter(None, (sentence, rule.detail)))
                rule = rule._replace(detail=detail, effect=(part, words))
            made = one.to_incident(cleared_at=None)
            yield made._replace(rule=rule, fields={**made.fields, **one.said.fields})

    def _severity(self, key: Key, one: _Failing) -> Severity | None:
        """Judge a failure by what it does to people now; None if it does not matter."""
        place, lasting, last = key[0], not one.said.cause.transient, one.times[-1]
        spread = last - one.first
        pause = 3 * spread / max(1, one.count - 1)
        if self.now - last > max(DAY if lasting else 6 * HOUR, pause):
            return None
        if self._worked.get(place, 0.0) > one.first:  # something else has succeeded there since
            if not one.unruled:
                return None
            if lasting and one.count >= 3:
                return Severity.WARNING
            return Severity.INFO if lasting or one.count >= 10 else None
        often = one.count >= 2 if lasting else one.count >= 3 and spread >= HOUR / 6
        again = one.ended_badly and one.count >= 2
        silencing = one.operation in SILENCING.get(place.part, ())
        if not one.unruled:  # the rules did not find it often enough
            return Severity.WARNING if silencing and one.count >= 2 and spread >= HOUR else None
        if silencing and (often or again):
            known = one.operation in WAYS_IN or place in self._worked
            return Severity.ERROR if known else Severity.WARNING
        if one.ended_badly or (often and (lasting or one.count >= 5)):
            return Severity.WARNING
        return Severity.INFO if lasting else None


def worse(one: Severity, other: Severity) -> Severity:
    """Return the worse of two severities."""
    return min(one, other, key=lambda severity: severity.rank)


def place_key(place: Place) -> dict[str, str]:
    """Return the field that distinguishes the incidents of a place."""
    return {"platform" if place.part == "platform" else "name": place.name}


def _rule(blame: Blame, place: Place) -> Rule:
    """Return the rule of a failure that has none of its own."""
    return _NO_RULE._replace(
        id=f"cause/{place.name}/{blame.cause.name}",
        code=blame.code,
        title=blame.title,
        cleared_by=[_ENDS] if place.part == "platform" else (),
        detail=blame.cause.detail,
        next=blame.cause.advice,
        only_set_up=place.part == "platform",
    )


_ENDS = LinePattern("", (), "INFO", ["gateway"])
"""Where lines about platforms that work are: the findings say if that log does not go back far."""
_NO_RULE = Rule("cause", "", Severity.WARNING.value, "", LinePattern("", ()), window=WINDOW)
