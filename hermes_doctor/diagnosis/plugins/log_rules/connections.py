"""Connections that are made again and again, or that never come, without a warning in the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise

from hermes_doctor.core.lazy import pattern
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause
from hermes_doctor.diagnosis.plugins.log_causes.reading import Place, Reader
from hermes_doctor.diagnosis.plugins.log_rules.blame import Blame
from hermes_doctor.diagnosis.plugins.log_rules.failures import place_key, rule_of
from hermes_doctor.diagnosis.plugins.log_rules.incident import Incident, OpenIncident
from hermes_doctor.diagnosis.plugins.log_rules.matcher import MATCH, Match
from hermes_doctor.diagnosis.plugins.log_rules.rates import NextChange
from hermes_doctor.hermes.logs.entry import LogEntry

UNSTABLE = "connection-unstable"
"""The name of the cause in the table."""
OFTEN, PAUSE = 8, 60.0
"""So many connections, each so many seconds after the one before at most, are not normal."""
OVER = 3600.0
"""After so many seconds without another one, the connection lasts."""
HEAD, MOST = 32, 500
"""Characters at the start of a line that tell what kind it is, and the kinds that are kept."""
CONNECT = "connect"


class Connections:
    """The last lines of each kind that may say that something was connected."""

    def __init__(self, reader: Reader, next_change: NextChange) -> None:
        self._reader, self._next_change, self._now = reader, next_change, next_change.now
        self._last: dict[tuple[str, str], deque[LogEntry]] = {}
        self.since: float = self._now - OVER - OFTEN * PAUSE
        """Older connections do not matter."""

    def note(self, entry: LogEntry) -> None:
        """Take an entry that may show that something works."""
        key = entry.logger, entry.text[:HEAD]
        known = self._last.get(key)
        if known is not None:
            known.append(entry)
        elif len(self._last) < MOST:
            self._last[key] = deque([entry], OFTEN)

    def gateway_started(self) -> None:
        """Forget the connections of the gateway before: each start makes new ones."""
        self._last.clear()

    def incidents(self) -> Iterator[Incident]:
        """Yield the connections that do not last."""
        cause = next((one for one in self._reader.causes if one.name == UNSTABLE), None)
        for entries in self._last.values() if cause else ():
            if not cause or not self._again_and_again(entries):
                continue
            if incident := self._incident(cause, entries):
                yield incident

    def _again_and_again(self, entries: deque[LogEntry]) -> bool:
        if len(entries) < OFTEN:
            return False
        self._next_change.note_moments([entries[-1].at + OVER])
        if self._now - entries[-1].at > OVER:
            return False
        times = [entry.at for entry in entries]
        return all(1.0 <= after - at <= PAUSE for at, after in pairwise(times))

    def _incident(self, cause: Cause, entries: Iterable[LogEntry]) -> Incident | None:
        """Return the incident if the lines are about connections of a platform."""
        incident: OpenIncident | None = None
        for entry in entries:
            success = next(iter(self._reader.successes(entry)), None)
            if success is None or success.place.part != "platform":
                return None
            if not success.operations or success.operations[0] != CONNECT:
                return None
            if incident is None:
                rule = rule_of(Blame(cause, success.place, {}), success.place)
                incident = OpenIncident(rule, place_key(success.place), self._now)
            incident.take(Match(incident.rule, MATCH, entry, {}, entry.text[:HEAD]))
        return incident.to_incident(cleared_at=None) if incident else None


def is_reported(incident: Incident) -> bool:
    """Tell whether an incident becomes more than a note."""
    return incident.cleared_at is None and incident.rule.severity != "info"


HANGING = "connection-hangs"
"""The name of the cause in the table."""
LOGGER = "gateway.run"
LONG = 900.0
"""Seconds without a line after which a connection hangs; each attempt has a shorter time limit."""
_LINE = pattern(
    r"(?:Connecting to (?P<first>\w{1,40})\.\.\.|Reconnecting (?P<again>\w{1,40}) \(attempt)"
    r"|(?:[✓✗] |Reconnect |(?:inbound message|response ready): platform=|Giving up reconnecting )"
    r"(?P<ended>\w{1,40})"
    r"|(?P<all>Gateway (?:running|started) with|Stopping gateway|No platforms?\b)"
)


class Hanging:
    """The connections that the gateway began and has not ended."""

    def __init__(self, reader: Reader, next_change: NextChange) -> None:
        self._reader, self._next_change, self._now = reader, next_change, next_change.now
        self._begun: dict[str, LogEntry] = {}

    def note(self, entry: LogEntry) -> None:
        """Take a line of the gateway."""
        match = _LINE.match(entry.text) if entry.logger == LOGGER else None
        if match is None:
            return
        if name := match["first"] or match["again"]:
            self._begun[name] = entry
        elif name := match["ended"]:
            self._begun.pop(name, None)
        else:
            for name in [one for one in self._begun if (entry.at - self._begun[one].at < LONG)]:
                del self._begun[name]

    def gateway_started(self) -> None:
        """Forget the gateway before."""
        self._begun.clear()

    def incidents(self) -> Iterator[Incident]:
        """Yield the connections that hang."""
        cause = next((one for one in self._reader.causes if one.name == HANGING), None)
        for name, entry in self._begun.items() if cause else ():
            self._next_change.note_moments([entry.at + LONG])
            place = self._reader.place_of(entry)
            late = self._now - entry.at >= LONG
            if cause and late and place and place[:2] == ("platform", name):
                yield self._incident(Blame(cause, place, {}), place, entry)

    def _incident(self, blame: Blame, place: Place, entry: LogEntry) -> Incident:
        rule = rule_of(blame, place)
        open_incident = OpenIncident(rule, place_key(place), self._now)
        open_incident.take(Match(rule, MATCH, entry, {}, entry.text[:80]))
        return open_incident.to_incident(cleared_at=None)
