"""An incident of a log rule, while its lines are being collected and afterwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_rules.adapters import LastWords
from hermes_doctor.plugins.log_rules.matcher import Match
from hermes_doctor.plugins.log_rules.rates import Rise
from hermes_doctor.plugins.log_rules.rule import Rule

QUOTES = 3
DAY = 86_400.0


class Quote(NamedTuple):
    """A log entry and the part of it that may be shown."""

    entry: LogEntry
    text: str


class Incident(NamedTuple):
    """Lines that match one rule and concern the same thing."""

    rule: Rule
    key: Mapping[str, str]
    """The fields they share: platform, account, session and so on."""
    fields: Mapping[str, str]
    """The fields of the last line."""
    first: float
    last: float
    number: int
    """The number of lines."""
    quotes: tuple[Quote, ...]
    cleared_at: float | None = None
    """When a line said that it was over, or the gateway was restarted."""
    pending: bool = False
    """Too early to report: it may still clear by itself."""
    reason: LastWords | None = None
    """What the platform's adapter said shortly before, if the rule asks for it."""
    doubtful: float = 0.0
    """When the log that would record its end starts, if that is after the incident; else 0."""
    rise: Rise | None = None
    """The rate of the lines, if they are reported only because it has risen."""


class OpenIncident:
    """An incident under construction."""

    def __init__(self, rule: Rule, key: Mapping[str, str], now: float) -> None:
        self.rule = rule
        self.now = now
        self.days: set[int] = set()
        """The days on which there are lines: 0 is today, counted back from now."""
        self.key = key
        self.fields: Mapping[str, str] = {}
        self.first = 0.0
        self.count = 0
        self.times: deque[float] = deque(maxlen=max(1, rule.threshold))
        self.reached = False
        self.begin: list[Quote] = []
        self.end: deque[Quote] = deque(maxlen=QUOTES - 1)
        self.reason: LastWords | None = None
        self.waiting: deque[Match] = deque(maxlen=100)
        """Lines that count only if a `followed_by` line comes after them."""

    def take(self, match: Match) -> None:
        at = match.entry.at
        self.first = self.first if self.count else at
        self.count += 1
        self.fields = match.fields
        self.times.append(at)
        long = self.rule.within or self.rule.window
        full = len(self.times) == self.rule.threshold
        if self.rule.days:
            self.days.add(max(0, int((self.now - at) // DAY)))
            full = full and len(self.days) >= self.rule.days and min(self.days) == 0
        full = full and at - self.first >= self.rule.spread
        self.reached = self.reached or (full and at - self.times[0] <= long)
        quote = Quote(match.entry, match.quote)
        (self.end if self.begin else self.begin).append(quote)

    def follow(self, match: Match) -> None:
        """Count the waiting lines that this line follows; those of other sessions keep waiting."""
        until, tag = match.entry.at, match.entry.session
        others = []
        while self.waiting:
            first = self.waiting.popleft()
            if tag and first.entry.session and first.entry.session != tag:
                others.append(first)
            elif until - first.entry.at <= self.rule.follows_within:
                self.take(first)
        self.waiting.extend(others)

    def agrees(self, fields: Mapping[str, str]) -> bool:
        """Tell whether a line is about the same thing, judged by the fields that both have."""
        return all(fields.get(name, value) == value for name, value in self.key.items())

    def to_incident(self, *, cleared_at: float | None, pending: bool = False) -> Incident:
        quotes = (*self.begin, *self.end)
        last = self.times[-1]
        return Incident(
            self.rule, self.key, self.fields, self.first, last, self.count, quotes,
            cleared_at, pending, self.reason,
        )  # fmt: skip
