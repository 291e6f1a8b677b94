"""Failures that no log rule describes: a place, what it tried, and why that failed.

A success of the same place and operation ends a failure. Time alone does not, as long as the place
has done nothing since: if a bot gets two messages a day and fails both, all of them fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.model import DATA, MODEL, PLATFORM, Severity
from hermes_doctor.plugins.log_causes.reading import Place
from hermes_doctor.plugins.log_causes.success_reader import Success
from hermes_doctor.plugins.log_rules.blame import Blame, cause_words
from hermes_doctor.plugins.log_rules.incident import DAY, Incident, OpenIncident
from hermes_doctor.plugins.log_rules.matcher import MATCH, Match
from hermes_doctor.plugins.log_rules.rule import LinePattern, Rule

WINDOW = 3 * DAY
MOST = 300
"""Different failures that are counted."""
HOUR = 3600.0
STARTING = 120.0
"""Seconds before a start is noted in which lines may belong to it."""
SILENCING = {
    "platform": ("connect", "log in", "receive", "send", "start"),
    "model": ("call the model", "connect", "log in"),
    "data": ("save",),
}
"""What people notice at once if it fails, by part."""
WAYS_IN = ("connect", "log in", "start")
"""Without these, a place does nothing else."""
EFFECTS = {
    "platform": (PLATFORM, "Nobody there gets an answer while this lasts."),
    "model": (MODEL, "Messages fail while this lasts."),
    "data": (DATA, "New messages are not saved while this lasts."),
}
"""What a failure does to the bot, by part: the part in the states, and a sentence."""


class _Failing(OpenIncident):
    """The lines about one place, operation and cause."""

    said: Blame
    """What the last line says."""
    ended_badly = False
    """Whether a line says that Hermes gave up or lost something."""


class Failures:
    """The failures that go on."""

    def __init__(self, now: float, worked: Mapping[Place, float]) -> None:
        """`worked`: when places last did anything with success, kept up to date by the caller."""
        self.now = now
        self.dropped = 0
        self._worked = worked
        self._open: dict[tuple[Place, str, str], _Failing] = {}
        """By place, operation and name of the cause."""

    def add(self, entry: LogEntry, blame: Blame, operation: str, outcome: str, words: str) -> None:
        """Count a line that names a cause."""
        place = blame.place
        if place is None or outcome == "recovered" or entry.at < self.now - WINDOW:
            return
        key = place, operation, blame.cause.name
        one = self._open.get(key)
        if one is None:
            if len(self._open) >= MOST:
                self.dropped += 1
                return
            one = self._open[key] = _Failing(_rule(blame, place), place_key(place), self.now)
        one.said = blame
        one.ended_badly = one.ended_badly or outcome in ("given up", "lost")
        one.take(Match(one.rule, MATCH, entry, blame.fields, words or place.label))

    def succeed(self, success: Success) -> None:
        """End what works again."""
        for key in [key for key in self._open if key[0] == success.place]:
            if not success.operations or key[1] in success.operations:
                del self._open[key]

    def gateway_started(self, at: float) -> None:
        """End what was before the start, but not what the start itself reported."""
        for key in [key for key, one in self._open.items() if one.times[-1] < at - STARTING]:
            del self._open[key]

    def incidents(self) -> Iterator[Incident]:
        """Yield the failures that go on, if they matter."""
        for (place, operation, _), one in self._open.items():
            severity = self._severity(place, operation, one)
            if severity is None:
                continue
            rule = _rule(one.said, place)._replace(severity=severity.value)
            if severity is Severity.ERROR:
                part, sentence = EFFECTS[place.part]
                words = cause_words(one.said.cause, {})
                detail = " ".join(filter(None, (sentence, rule.detail)))
                rule = rule._replace(detail=detail, effect=(part, words))
            yield one.to_incident(cleared_at=None)._replace(rule=rule)

    def _severity(self, place: Place, operation: str, one: _Failing) -> Severity | None:
        """Judge a failure by what it does to people now; None if it does not matter."""
        lasting, last = not one.said.cause.transient, one.times[-1]
        spread = last - one.first
        pause = 3 * spread / max(1, one.count - 1)
        if self.now - last > max(DAY if lasting else 6 * HOUR, pause):
            return None
        if self._worked.get(place, 0.0) > one.first:  # it does other things meanwhile
            if lasting and one.count >= 3:
                return Severity.WARNING
            return Severity.INFO if lasting or one.count >= 10 else None
        often = one.count >= 2 if lasting else one.count >= 3 and spread >= HOUR / 6
        again = one.ended_badly and one.count >= 2
        if operation in SILENCING.get(place.part, ()) and (often or again):
            known = operation in WAYS_IN or place in self._worked
            return Severity.ERROR if known else Severity.WARNING
        if one.ended_badly or (often and (lasting or spread >= HOUR / 2)):
            return Severity.WARNING
        return Severity.INFO if lasting else None


def place_key(place: Place) -> dict[str, str]:
    """Return the field that distinguishes the incidents of a place."""
    return {"platform" if place.part == "platform" else "name": place.name}


def _rule(blame: Blame, place: Place) -> Rule:
    """Return the rule of a failure that has none of its own."""
    return Rule(
        id=f"cause/{place.name}/{blame.cause.name}",
        code=blame.code,
        severity=Severity.WARNING.value,
        title=blame.title,
        line=LinePattern("", ()),
        cleared_by=[LinePattern("", (), "INFO", ["gateway"])] if place.part == "platform" else (),
        detail=blame.cause.detail,
        next=blame.cause.advice,
        window=WINDOW,
        only_set_up=place.part == "platform",
    )
