"""Group matching log lines into incidents: what happened, how often, and whether it is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import ceil, inf

from hermes_doctor.backup.records.receipts import Handled
from hermes_doctor.core.model import Severity
from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader, Reading
from hermes_doctor.diagnosis.plugins.log_rules.blame import Key, key_of
from hermes_doctor.diagnosis.plugins.log_rules.entry_causes import EntryCauses, split_unknown
from hermes_doctor.diagnosis.plugins.log_rules.failures import WINDOW, Reported, worse
from hermes_doctor.diagnosis.plugins.log_rules.incident import (
    DAY,
    Adapters,
    Incident,
    OpenIncident,
    all_fields,
    key_names,
)
from hermes_doctor.diagnosis.plugins.log_rules.matcher import (
    ANSWERED,
    CLEAR,
    FOLLOW,
    GIVEN_UP,
    Match,
    Matcher,
)
from hermes_doctor.diagnosis.plugins.log_rules.needed_entries import START, NeededEntries
from hermes_doctor.diagnosis.plugins.log_rules.rates import (
    AGES as RATE_AGES,
    Key as _Key,
    NextChange,
    Rates,
    is_compared,
)
from hermes_doctor.diagnosis.plugins.log_rules.rule import Rule, applies_to
from hermes_doctor.hermes.logs.entry import LogEntry

MOST, MOST_OF_ONE = 2000, 500
"""Limits for closed incidents in total and for open ones of each rule.

They are counted apart, so that a flood of accounts or sessions cannot fill memory or hide others.
"""
FEW = 50
"""Up to this number of open incidents, a rule's incidents are compared one by one."""
_AHEAD = 5.0
"""Seconds by which the clock of the log's writer may be ahead of ours."""
FRESH = 600.0
"""After so many seconds, a sound check outweighs a line of a rule with `unless_ok`."""
_SAME_TIME = 60.0
"""Seconds by which a better rule's last line may be older."""
_FUTURE, _ZONES = 300.0, 15 * 3600.0
"""Seconds from now from which on a line's clock or time zone is wrong, and the most of a zone."""
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")


class IncidentTracker:
    """Builds incidents from log entries that are added in order of time."""

    def __init__(
        self,
        rules: Iterable[Rule],
        *,
        now: float,
        release: tuple[int, ...] | None = None,
        starts: Sequence[float] = (),
        handled: Sequence[Handled] = (),
        chats: Callable[[], Mapping[str, str]] = dict,
        reader: Reader | None = None,
        symptoms: Collection[str] = (),
    ) -> None:
        """`starts`: when gateway processes started; if empty, the start lines of the log are used.

        `handled`: when this tool worked on the home, in order of the end. `chats`: the chat of each
        session that entries are tagged with, where known. `reader`: reads the causes of entries;
        `symptoms`: codes that blame nothing.
        """
        rules = list(rules)
        self.next_change = NextChange(now)
        known, unknown = split_unknown(rules) if reader else (rules, None)
        self.rules = [rule for rule in known if applies_to(rule.versions, release)]
        self.causes = (
            EntryCauses(reader, known, unknown, symptoms, self.next_change) if reader else None
        )
        self.now = now
        self.starts = deque(sorted(starts))
        self.by_log = not starts
        self.handled = handled
        self.settled = deque(handled)
        """Those whose end is still to come while entries are added."""
        self.chats = chats
        self.open: dict[str, dict[_Key, OpenIncident]] = {}
        """Open incidents by rule, then by key."""
        self.keys: dict[str, Sequence[str]] = {}
        self.closed: deque[Incident] = deque(maxlen=MOST)
        self.dropped = 0
        self.rates = Rates(now, self.next_change)
        self.compared = {rule.id for rule in self.rules if is_compared(rule)}
        self.adapters = Adapters() if any(rule.adapter for rule in self.rules) else None
        self.needed = NeededEntries(
            self.rules, now, lambda: self.matcher, self.causes, adapters=self.adapters is not None
        )
        windows = {rule.window for rule in rules if rule.unknown or rule.days}
        windows |= self.needed.windows
        self.next_change.ages = (*windows, DAY, WINDOW, *RATE_AGES)
        self.future: dict[str, list[LogEntry]] = {}
        """Entries from the future by source; they count if their whole source is ahead."""

    @cached_property
    def matcher(self) -> Matcher:
        """Built when the first line arrives, because sorting all rules takes time."""
        return Matcher(self.rules, self.now, self.compared)

    def ends_since(self) -> float:
        """Return since when a skipped line could have ended an incident; infinity if none is open.

        Lines from before an incident change nothing.
        """
        failing = self.causes and any(True for _ in self.causes.incidents({}))
        if not failing and not any(
            one.rule.cleared_by and not self._is_early(one) for one in self._reached()
        ):
            return inf
        moments = [open_incident.first for open_incident in self._reached()]
        if self.causes:
            moments.append(self.causes.successes_since())
        return min(moments, default=-inf)

    def _reached(self) -> Iterator[OpenIncident]:
        """Return the open incidents that have enough lines."""
        return (one for same in self.open.values() for one in same.values() if one.reached)

    def add_entry(self, entry: LogEntry) -> None:
        """Process one entry."""
        if entry.at > self.now + _FUTURE:
            self.next_change.note_moments([entry.at - _FUTURE, entry.at - _ZONES])
            if entry.at < self.now + _ZONES:
                self.future.setdefault(entry.source, []).append(entry)
            return
        if self.future:  # the clock was wrong once and is right again
            self.future.pop(entry.source, None)
        self._process(entry)

    def _process(self, entry: LogEntry) -> None:
        while self.starts and self.starts[0] <= entry.at:
            self.gateway_started(self.starts.popleft())
        while self.settled and self.settled[0].ended <= entry.at:
            self._settle(self.settled.popleft())
        if self.by_log and _starts(entry):
            self.gateway_started(entry.at)
        if self.adapters:
            self.adapters.note(entry)
        self.rates.date(entry)
        reading: Reading | None = None
        matches: Sequence[Match] = self.matcher.ask(entry)
        if entry.level in _SERIOUS or any(match.rule.days for match in matches):
            self.next_change.note_line(entry.at)
            self.next_change.note_moments(
                entry.at + DAY * number
                for match in matches
                if match.rule.days
                for number in range(1, 1 + ceil(match.rule.window / DAY))
            )
        if self.causes:
            reading, matches = self.causes.take(entry, matches)
        for match in matches:
            compared = match.rule.id in self.compared
            if entry.at < self.now - match.rule.window and not compared:
                continue
            if match.rule.per_session or match.rule.platform or "platform" in match.fields:
                match = match._replace(fields=all_fields(match))
            if compared:
                self.rates.note(match, self._key(match))
            if entry.at < self.now - match.rule.window:
                continue
            self._apply(match, reading)

    def _apply(self, match: Match, reading: Reading | None) -> None:
        if match.role == CLEAR:
            self._clear(match)
        elif match.role == FOLLOW:
            self._follow(match)
        elif match.role == GIVEN_UP:
            for incident in self.open.get(match.rule.id, {}).values():
                incident.give_up(match.entry.session)
        elif match.role == ANSWERED:
            self._answer(match)
        elif not self._is_ours(match):
            self._take(match, reading)

    def gateway_started(self, at: float) -> None:
        """Close what the previous gateway process reported, because the gateway was restarted."""
        self.next_change.note_line(at)
        self.rates.started = at
        if self.causes:
            self.causes.gateway_started(at)
        for same in list(self.open.values()):
            for key, incident in list(same.items()):
                if not incident.rule.outlives_start and _last(incident) <= at:
                    self._close(key, incident, at)

    def _settle(self, handled: Handled) -> None:
        """Close what this tool repaired, and ends of the gateway if one stays up since."""
        for same in list(self.open.values()):
            for key, incident in list(same.items()):
                counted = handled.proved and incident.rule.counts_lives
                if counted or incident.rule.code in handled.codes:
                    self._close(key, incident, handled.ended)

    def _is_ours(self, match: Match) -> bool:
        """Tell whether a line is about a start or stop by this tool."""
        return match.rule.counts_lives and any(
            handled.began <= match.entry.at <= handled.ended for handled in self.handled
        )

    def incidents(self) -> list[Incident]:
        """Return the open and closed incidents, oldest first."""
        for entry in sorted(entry for same in self.future.values() for entry in same):
            self._process(entry)
        self.future = {}
        while self.starts:
            self.gateway_started(self.starts.popleft())
        while self.settled:
            self._settle(self.settled.popleft())
        self._note_changes()
        closed = list(self.closed)
        wanted: dict[Key, Rule] = {}
        reported: dict[Reported, Severity] = {}
        for one in self._reached():
            rule = one.rule
            if not self._yields(one):  # else a better rule reports it
                closed.append(open_incident := self._incident(one, wanted))
                rule = open_incident.rule
            if self.causes and not self._is_early(one):
                for what, severity in self.causes.reports(one, rule):
                    reported[what] = worse(reported.get(what, severity), severity)
        closed += self._risen({(one.rule.id, tuple(one.key.items())) for one in closed})
        if self.causes:
            closed += self.causes.incidents(wanted, reported)
            closed += self.causes.loops(closed)
        return sorted(closed, key=lambda incident: (incident.first, incident.rule.id))

    def _note_changes(self) -> None:
        """Note when open incidents may be judged in another way; closed ones are over."""
        if self.dropped:
            self.next_change.note_moments([self.now])
        for open_incident in self._reached():
            rule, note = open_incident.rule, self.next_change.note_moments
            first = open_incident.first
            note([first + rule.window, first + rule.settle, first - _AHEAD])
            if rule.unless_ok:
                note([_last(open_incident) + FRESH])

    def _incident(self, open_incident: OpenIncident, wanted: dict[Key, Rule]) -> Incident:
        incident = open_incident.to_incident(cleared_at=None, pending=self._is_early(open_incident))
        if (
            self.causes
            and open_incident.blame
            and open_incident.blame.beside
            and not incident.pending
        ):
            return self.causes.explain(incident, open_incident.blame, wanted)
        if self.causes and open_incident.reason_named and not open_incident.blame:
            return self.causes.with_reason(incident, open_incident.reason_named)
        return incident

    def _is_early(self, incident: OpenIncident) -> bool:
        """Tell whether it may still clear by itself; not if the end of a message is known."""
        return (
            incident.outcome is None and -_AHEAD <= self.now - incident.first < incident.rule.settle
        )

    def _risen(self, known: Collection[tuple[str, _Key]]) -> Iterator[Incident]:
        """Yield what no threshold reports, but is written much more often than before."""
        for rule, key, matches, rise in self.rates.risen():
            open_incident = OpenIncident(rule, dict(key), self.now)
            for match in matches:
                open_incident.take(match)
            if (rule.id, key) not in known and not self._yields(open_incident):
                yield open_incident.to_incident(cleared_at=None)._replace(rise=rise)

    def _yields(self, incident: OpenIncident) -> bool:
        """Tell whether a better rule has an open incident about the same thing."""
        better = (
            other for id in incident.rule.yields_to for other in self.open.get(id, {}).values()
        )
        return any(
            other.reached
            and not self._is_early(other)
            and other.agrees(incident.key)
            and not (other.rule.unless_ok and _last(other) < self.now - FRESH)
            and _last(other) >= _last(incident) - _SAME_TIME
            and (other.count >= incident.count or "session" not in other.key)
            for other in better
        )

    def _take(self, match: Match, reading: Reading | None) -> None:
        key = self._key(match)
        same = self.open.setdefault(match.rule.id, {})
        incident = same.get(key)
        if incident is None:
            if len(same) >= MOST_OF_ONE:
                self.dropped += 1
                return
            incident = same[key] = OpenIncident(match.rule, dict(key), self.now)
            self.matcher.incident_opened(match.rule)
        if self.adapters and match.rule.adapter and "platform" in match.fields:
            last_words = self.adapters.reason(match.fields["platform"], match.entry.at)
            incident.reason = last_words or incident.reason
        if self.causes and reading and reading.cause:
            incident.blame = self.causes.blamer.judge(reading, match.rule)
            incident.reason_named = self.causes.blamer.reason(reading, match.rule)
            incident.failure = key_of(reading)
        if match.rule.followed_by:
            incident.waiting.append(match)
        else:
            incident.take(match)

    def _key(self, match: Match) -> _Key:
        keys = self.keys.get(match.rule.id)
        if keys is None:
            keys = self.keys[match.rule.id] = key_names(match.rule)
        fields = match.fields
        return tuple((name, fields[name]) for name in keys if name in fields)

    def _about(self, match: Match) -> list[tuple[_Key, OpenIncident]]:
        """Return the open incidents that a line is about, judged by its fields."""
        same = self.open.get(match.rule.id, {})
        if len(same) > FEW and (failure := same.get(key := self._key(match))) is not None:
            return [(key, failure)]
        if len(same) > FEW and key and len(key) == len(next(iter(same))):
            return []  # the line has all key fields, and no incident has this key
        return [(known, one) for known, one in same.items() if one.agrees(match.fields)]

    def _follow(self, match: Match) -> None:
        chat = self.chats().get(match.entry.session) if match.entry.session else None
        if chat and not match.rule.per_session:
            match = match._replace(fields={"session": chat, **match.fields})
        for _, incident in self._about(match):
            incident.follow(match)

    def _clear(self, match: Match) -> None:
        for key, incident in self._about(match):
            if match.entry.session not in incident.replaced:
                self._close(key, incident, match.entry.at)

    def _answer(self, match: Match) -> None:
        """Note that a message was answered; that ends it, unless it was answered in its place."""
        for key, incident in list(self.open.get(match.rule.id, {}).items()):
            if not incident.answer(match) and incident.agrees(match.fields):
                self._close(key, incident, match.entry.at)

    def _close(self, key: _Key, incident: OpenIncident, at: float) -> None:
        del self.open[incident.rule.id][key]
        self.matcher.incident_closed(incident.rule)
        if self.causes and incident.failure:
            self.next_change.note_moments([incident.first + incident.rule.window])
            self.causes.failures.end(incident.failure)
        if incident.reached:
            self.closed.append(incident.to_incident(cleared_at=at))


def _starts(entry: LogEntry) -> bool:
    """Tell whether the entry is the first line of a gateway's start."""
    return entry.logger == START[0] and entry.text.startswith(START[1])


def _last(incident: OpenIncident) -> float:
    if incident.waiting:
        return incident.waiting[-1].entry.at
    return incident.times[-1] if incident.times else 0.0
