"""Group matching log lines into incidents: what happened, how often, and whether it is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property

from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.reading import Reading
from hermes_doctor.plugins.log_rules.adapters import Adapters, is_adapter
from hermes_doctor.plugins.log_rules.blame import EntryReader, Key, key_of
from hermes_doctor.plugins.log_rules.entry_causes import EntryCauses, split_unknown
from hermes_doctor.plugins.log_rules.failures import WINDOW
from hermes_doctor.plugins.log_rules.incident import DAY, Incident, OpenIncident
from hermes_doctor.plugins.log_rules.match_fields import all_fields, key_names
from hermes_doctor.plugins.log_rules.matcher import (
    ANSWERED,
    CLEAR,
    FOLLOW,
    GIVEN_UP,
    Match,
    Matcher,
)
from hermes_doctor.plugins.log_rules.rates import Key as _Key, Rates, is_compared
from hermes_doctor.plugins.log_rules.rule import Rule
from hermes_doctor.plugins.log_rules.versions import applies_to
from hermes_doctor.records.handled import Handled

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
_START = ("gateway.run", "Starting Hermes Gateway")


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
        reader: EntryReader | None = None,
        symptoms: Collection[str] = (),
    ) -> None:
        """`starts`: when gateway processes started; if empty, the start lines of the log are used.

        `handled`: when this tool worked on the home, in order of the end. `chats`: the chat of each
        session that entries are tagged with, where known. `reader`: reads the causes of entries;
        `symptoms`: codes that blame nothing.
        """
        known, unknown = split_unknown(rules) if reader else (list(rules), None)
        self.rules = [rule for rule in known if applies_to(rule.versions, release)]
        self.causes = EntryCauses(reader, known, unknown, symptoms, now) if reader else None
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
        self.rates = Rates(now)
        self.compared = {rule.id for rule in self.rules if is_compared(rule)}
        self.adapters = Adapters() if any(rule.adapter for rule in self.rules) else None
        # Each session has heads of its own in a log, so the same question comes hundreds of times.
        self.wanted = cache(self._wanted)
        self.may_begin = cache(self._may_begin)
        self.future: dict[str, list[LogEntry]] = {}
        """Entries from the future by source; they count if their whole source is ahead."""

    @cached_property
    def matcher(self) -> Matcher:
        """Built when the first line arrives, because sorting all rules takes time."""
        return Matcher(self.rules)

    def since(self, *kinds: str) -> float:
        """Return the earliest time that any rule about these sources needs."""
        windows = [
            min(rule.window, DAY) if rule.days else rule.window
            for rule in self.rules
            if not kinds or rule.source in kinds
        ]
        return self.now - max(windows, default=0.0)

    def since_days(self) -> float:
        """Return the earliest time of a warning that is needed, such as by rules about days."""
        windows = [rule.window for rule in self.rules if rule.days]
        return self.now - max((*windows, WINDOW if self.causes else 0.0))

    def needs_ends(self) -> bool:
        """Tell whether an incident is open that a skipped line could have ended."""
        return self._causes_left() or any(
            one.reached and one.rule.cleared_by and not self._is_early(one)
            for same in self.open.values()
            for one in same.values()
        )

    def _causes_left(self) -> bool:
        return self.causes is not None and any(True for _ in self.causes.incidents({}))

    def _wanted(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger matter; only log files name a logger."""
        return (
            self.matcher.wanted(level, logger)
            or self._is_needed(level, logger)
            or self._is_read(level, logger, ends=True)
        )

    def _may_begin(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger can be more than the end of an incident."""
        return (
            self.matcher.may_begin(level, logger)
            or self._is_needed(level, logger)
            or self._is_read(level, logger, ends=False)
        )

    def _is_needed(self, level: str, logger: str) -> bool:
        if not logger or logger == _START[0]:
            return True
        return self.adapters is not None and is_adapter(level, logger)

    def _is_read(self, level: str, logger: str, *, ends: bool) -> bool:
        return self.causes is not None and self.causes.is_read(level, logger, ends=ends)

    def add_entry(self, entry: LogEntry) -> None:
        """Process one entry."""
        if entry.at > self.now + _FUTURE:
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
            if match.role == CLEAR:
                self._clear(match)
            elif match.role == FOLLOW:
                self._follow(match)
            elif match.role == GIVEN_UP:
                for one in self.open.get(match.rule.id, {}).values():
                    one.give_up(match.entry.session)
            elif match.role == ANSWERED:
                self._answer(match)
            elif not self._is_ours(match):
                self._take(match, reading)

    def gateway_started(self, at: float) -> None:
        """Close what the previous gateway process reported, because the gateway was restarted."""
        self.rates.started = at
        if self.causes:
            self.causes.gateway_started(at)
        for same in list(self.open.values()):
            for key, one in list(same.items()):
                if not one.rule.outlives_start and _last(one) <= at:
                    self._close(key, one, at)

    def _settle(self, handled: Handled) -> None:
        """Close what this tool repaired, and ends of the gateway if one stays up since."""
        for same in list(self.open.values()):
            for key, one in list(same.items()):
                counted = handled.proved and one.rule.counts_lives
                if counted or one.rule.code in handled.codes:
                    self._close(key, one, handled.ended)

    def _is_ours(self, match: Match) -> bool:
        """Tell whether a line is about a start or stop by this tool."""
        return match.rule.counts_lives and any(
            one.began <= match.entry.at <= one.ended for one in self.handled
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
        found = list(self.closed)
        wanted: dict[Key, Rule] = {}
        found += [
            self._incident(one, wanted)
            for same in self.open.values()
            for one in same.values()
            if one.reached and not self._yields(one)
        ]
        found += self._risen({(one.rule.id, tuple(one.key.items())) for one in found})
        if self.causes:
            found += self.causes.incidents(wanted)
        return sorted(found, key=lambda incident: (incident.first, incident.rule.id))

    def _incident(self, one: OpenIncident, wanted: dict[Key, Rule]) -> Incident:
        incident = one.to_incident(cleared_at=None, pending=self._is_early(one))
        if self.causes and one.blame and one.blame.beside and not incident.pending:
            return self.causes.explain(incident, one.blame, wanted)
        return incident

    def _is_early(self, one: OpenIncident) -> bool:
        """Tell whether it may still clear by itself; not if the end of a message is known."""
        return one.outcome is None and -_AHEAD <= self.now - one.first < one.rule.settle

    def _risen(self, known: Collection[tuple[str, _Key]]) -> Iterator[Incident]:
        """Yield what no threshold reports, but is written much more often than before."""
        for rule, key, matches, rise in self.rates.risen():
            one = OpenIncident(rule, dict(key), self.now)
            for match in matches:
                one.take(match)
            if (rule.id, key) not in known and not self._yields(one):
                yield one.to_incident(cleared_at=None)._replace(rise=rise)

    def _yields(self, one: OpenIncident) -> bool:
        """Tell whether a better rule has an open incident about the same thing."""
        better = (other for id in one.rule.yields_to for other in self.open.get(id, {}).values())
        return any(
            other.reached
            and not self._is_early(other)
            and other.agrees(one.key)
            and not (other.rule.unless_ok and _last(other) < self.now - FRESH)
            and _last(other) >= _last(one) - _SAME_TIME
            and (other.count >= one.count or "session" not in other.key)
            for other in better
        )

    def _take(self, match: Match, reading: Reading | None) -> None:
        key = self._key(match)
        same = self.open.setdefault(match.rule.id, {})
        one = same.get(key)
        if one is None:
            if len(same) >= MOST_OF_ONE:
                self.dropped += 1
                return
            one = same[key] = OpenIncident(match.rule, dict(key), self.now)
            self.matcher.incident_opened(match.rule)
        if self.adapters and match.rule.adapter and "platform" in match.fields:
            said = self.adapters.reason(match.fields["platform"], match.entry.at)
            one.reason = said or one.reason
        if self.causes and reading and reading.cause:
            one.blame = self.causes.blame(reading, match.rule)
            one.failure = key_of(reading)
        if match.rule.followed_by:
            one.waiting.append(match)
        else:
            one.take(match)

    def _key(self, match: Match) -> _Key:
        keys = self.keys.get(match.rule.id)
        if keys is None:
            keys = self.keys[match.rule.id] = key_names(match.rule)
        fields = match.fields
        return tuple((name, fields[name]) for name in keys if name in fields)

    def _about(self, match: Match) -> list[tuple[_Key, OpenIncident]]:
        """Return the open incidents that a line is about, judged by its fields."""
        same = self.open.get(match.rule.id, {})
        if len(same) > FEW and (one := same.get(key := self._key(match))) is not None:
            return [(key, one)]
        if len(same) > FEW and key and len(key) == len(next(iter(same))):
            return []  # the line has all key fields, and no incident has this key
        return [(known, one) for known, one in same.items() if one.agrees(match.fields)]

    def _follow(self, match: Match) -> None:
        chat = self.chats().get(match.entry.session) if match.entry.session else None
        if chat and not match.rule.per_session:
            match = match._replace(fields={"session": chat, **match.fields})
        for _, one in self._about(match):
            one.follow(match)

    def _clear(self, match: Match) -> None:
        for key, one in self._about(match):
            if match.entry.session not in one.replaced:
                self._close(key, one, match.entry.at)

    def _answer(self, match: Match) -> None:
        """Note that a message was answered; that ends it, unless it was answered in its place."""
        for key, one in list(self.open.get(match.rule.id, {}).items()):
            if not one.answer(match) and one.agrees(match.fields):
                self._close(key, one, match.entry.at)

    def _close(self, key: _Key, one: OpenIncident, at: float) -> None:
        del self.open[one.rule.id][key]
        self.matcher.incident_closed(one.rule)
        if self.causes and one.failure:
            self.causes.end(one.failure)
        if one.reached:
            self.closed.append(one.to_incident(cleared_at=at))


def _starts(entry: LogEntry) -> bool:
    """Tell whether the entry is the first line of a gateway's start."""
    return entry.logger == _START[0] and entry.text.startswith(_START[1])


def _last(one: OpenIncident) -> float:
    if one.waiting:
        return one.waiting[-1].entry.at
    return one.times[-1] if one.times else 0.0
