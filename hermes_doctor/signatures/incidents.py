"""From matching lines to incidents: what happened, how often, and whether it is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from hermes_doctor.logs.entry import Entry
from hermes_doctor.signatures.matching import CLEAR, FOLLOW, Match, Matcher
from hermes_doctor.signatures.rule import KEYS, Rule
from hermes_doctor.signatures.versions import covers
from hermes_doctor.values import NamedTuple

QUOTES = 3
MOST = 2000
"""Incidents that are kept apart; a flood of accounts or sessions fills no memory."""
_START = ("gateway.run", "Starting Hermes Gateway")


_Key = tuple[str | tuple[str, str], ...]


class Quote(NamedTuple):
    """A line, as far as it may be shown."""

    entry: Entry
    text: str


class Incident(NamedTuple):
    """Lines of one rule that belong together."""

    rule: Rule
    key: Mapping[str, str]
    """What they have in common: platform, account, session and the like."""
    fields: Mapping[str, str]
    """What the last of them said."""
    first: float
    last: float
    number: int
    """How many lines."""
    quotes: tuple[Quote, ...]
    cleared_at: float | None = None
    """When a line said that it was over, or the gateway was started anew."""
    pending: bool = False
    """It may still clear by itself; too early to say."""

    @property
    def rate(self) -> float:
        """How many an hour, while it lasted."""
        return self.number * 3600 / max(self.last - self.first, 3600.0)


class _Open:
    """An incident as it grows."""

    def __init__(self, rule: Rule, key: Mapping[str, str]) -> None:
        self.rule = rule
        self.key = key
        self.fields: Mapping[str, str] = {}
        self.first = 0.0
        self.count = 0
        self.times: deque[float] = deque(maxlen=max(1, rule.threshold))
        self.reached = False
        self.begin: list[Quote] = []
        self.end: deque[Quote] = deque(maxlen=QUOTES - 1)
        self.waiting: deque[Match] = deque(maxlen=100)
        """Lines that count only when another follows."""

    def take(self, match: Match) -> None:
        at = match.entry.at
        self.first = self.first if self.count else at
        self.count += 1
        self.fields = match.fields
        self.times.append(at)
        long = self.rule.within or self.rule.window
        full = len(self.times) == self.rule.threshold
        self.reached = self.reached or (full and at - self.times[0] <= long)
        quote = Quote(match.entry, match.quote)
        (self.end if self.begin else self.begin).append(quote)

    def follow(self, match: Match) -> None:
        """What was waited for has come: those before it count."""
        until = match.entry.at
        while self.waiting:
            first = self.waiting.popleft()
            if until - first.entry.at <= self.rule.follows_within:
                self.take(first)

    def agrees(self, fields: Mapping[str, str]) -> bool:
        """Whether another line is about the same thing, as far as both say."""
        return all(fields.get(name, value) == value for name, value in self.key.items())

    def told(self, *, cleared_at: float | None, pending: bool = False) -> Incident:
        quotes = (*self.begin, *self.end)
        last = self.times[-1]
        return Incident(
            self.rule, self.key, self.fields, self.first, last, self.count, quotes,
            cleared_at, pending,
        )  # fmt: skip


class Ledger:
    """Takes entries in the order of time, and tells in the end what they come to."""

    def __init__(
        self, rules: Iterable[Rule], *, now: float, release: tuple[int, ...] | None = None
    ) -> None:
        self.rules = [rule for rule in rules if covers(rule.versions, release)]
        self.matcher = Matcher(self.rules)
        self.now = now
        self.open: dict[_Key, _Open] = {}
        self.keys: dict[str, Sequence[str]] = {}
        self.closed: list[Incident] = []
        self.dropped = 0

    def since(self, *kinds: str) -> float:
        """The oldest moment that any rule about these sources cares about."""
        windows = [rule.window for rule in self.rules if not kinds or rule.source in kinds]
        return self.now - max(windows, default=0.0)

    def wanted(self, level: str, logger: str) -> bool:
        """Whether an entry of this level and logger matters; other sources name no logger."""
        return not logger or logger == _START[0] or self.matcher.wanted(level, logger)

    def take(self, entry: Entry) -> None:
        """One more entry."""
        if _starts(entry):
            self.started(entry.at)
        for match in self.matcher.ask(entry):
            if entry.at < self.now - match.rule.window:
                continue
            if match.rule.per_session or match.rule.platform or "platform" in match.fields:
                match = match._replace(fields=_fields(match))
            if match.role == CLEAR:
                self._clear(match)
            elif match.role == FOLLOW:
                self._follow(match)
            else:
                self._take(match)

    def started(self, at: float) -> None:
        """The gateway began anew: what its last life complained of is history."""
        for key, one in list(self.open.items()):
            if not one.rule.outlives_start and _last(one) <= at:
                self._close(key, at)

    def incidents(self) -> list[Incident]:
        """What is left and what is over, oldest first."""
        found = list(self.closed)
        for one in self.open.values():
            if one.reached:
                early = self.now - one.first < one.rule.settle
                found.append(one.told(cleared_at=None, pending=early))
        return sorted(found, key=lambda incident: (incident.first, incident.rule.id))

    def _take(self, match: Match) -> None:
        keys = self.keys.get(match.rule.id)
        if keys is None:
            keys = self.keys[match.rule.id] = _keys(match.rule)
        key = {name: match.fields[name] for name in keys if name in match.fields}
        name: _Key = (match.rule.id, *key.items())
        one = self.open.get(name)
        if one is None:
            if len(self.open) + len(self.closed) >= MOST:
                self.dropped += 1
                return
            one = self.open[name] = _Open(match.rule, key)
            self.matcher.begin(match.rule)
        if match.rule.followed_by:
            one.waiting.append(match)
        else:
            one.take(match)

    def _follow(self, match: Match) -> None:
        for one in self.open.values():
            if one.rule.id == match.rule.id and one.agrees(match.fields):
                one.follow(match)

    def _clear(self, match: Match) -> None:
        for key, one in list(self.open.items()):
            if one.rule.id == match.rule.id and one.agrees(match.fields):
                self._close(key, match.entry.at)

    def _close(self, key: _Key, at: float) -> None:
        one = self.open.pop(key)
        self.matcher.end(one.rule)
        if one.reached and len(self.closed) < MOST:
            self.closed.append(one.told(cleared_at=at))


def _starts(entry: Entry) -> bool:
    """Whether a gateway begins here, by its log or by its diary."""
    if entry.kind == "exit-diary":
        return entry.text.startswith("gateway.start")
    return entry.logger == _START[0] and entry.text.startswith(_START[1])


def _keys(rule: Rule) -> Sequence[str]:
    taken = rule.per_session or "(?P<session>" in rule.line.pattern
    return KEYS if taken else [name for name in KEYS if name != "session"]


def _fields(match: Match) -> dict[str, str]:
    """What the line said, with what the rule and the entry add."""
    fields = dict(match.fields)
    if match.rule.platform:
        fields.setdefault("platform", match.rule.platform)
    if "platform" in fields:  # [Telegram] and telegram are the same
        fields["platform"] = fields["platform"].lower()
    if match.rule.per_session and match.entry.session:
        fields.setdefault("session", match.entry.session)
    return fields


def _last(one: _Open) -> float:
    if one.waiting:
        return one.waiting[-1].entry.at
    return one.times[-1] if one.times else 0.0
