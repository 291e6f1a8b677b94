"""An incident of a log rule: its lines, what they share, and the reason that an adapter gave."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.log_rules.blame import Blame, Key, blamed
from hermes_doctor.diagnosis.plugins.log_rules.matcher import Match
from hermes_doctor.diagnosis.plugins.log_rules.rates import Rise
from hermes_doctor.diagnosis.plugins.log_rules.rule import KEYS, Rule
from hermes_doctor.hermes.logs.entry import LogEntry

_LOGGER = pattern(
    r"(?:gateway\.platforms\.(\w+?)(?:_adapter)?|hermes_plugins\.(\w+?)_platform"
    r"|plugins\.platforms\.(\w+))(?:\.|$)"
)
_PREFIXES = ("gateway.platforms.", "hermes_plugins.", "plugins.platforms.")
_NOT_PLATFORMS = ("base", "helpers", "utils")
_SERIOUS = ("WARNING", "ERROR", "CRITICAL")
_REASON = pattern(
    r"(?i)\b(?:(?:dis|re)?connect\w*|log ?in|logged out|auth\w*|tokens?|credentials?|secrets?|keys?"
    r"|start\w*|refus\w*|denied|timed? ?out|required|missing"
    r"|not (?:set|found|installed|configured|registered)|invalid|expired|exit\w*|https?|errors?"
    r"|fail\w*|ports?|bridge|npm|dns|resolv\w*|ssl|certificate|proxy|intents?|permissions?)\b"
)
_PREFIX = pattern(r"\[[^\]]{0,60}\] ?")
_OTHERS = pattern(
    r"(?:\[[^\]]{0,60}\] )?(?:Unauthorized|Rejected|Dropping|Dropped|Ignoring|Ignored|Denied"
    r"|Blocked|File too large|Unsupported document|Document too large|API FAIL"
    r"|Failed to (?:cache|parse|send|download)|Send |send |response_|inbound"
    r"|Error (?:handling|processing|sending))"
)
"""The starts of lines that may contain words of strangers, or are about single messages."""
_BEFORE = 300.0
_LONGEST = 100
"""Characters at the start of a line, up to a colon, that are the adapter's own words."""

_MOST = 1000
"""Characters of a line that are kept; fewer are shown."""
_MOST_NEW = 100
"""The number of entries after which they are judged, needed or not, so that few are kept."""


class Quote(NamedTuple):
    """A log entry and the part of it that may be shown."""

    entry: LogEntry
    text: str


class Adapters:
    """The last reason that each adapter gave."""

    def __init__(self) -> None:
        self._said: dict[str, Quote] = {}
        self._new: list[LogEntry] = []
        """Entries that were not judged yet, because most homes never need a reason."""

    def note(self, entry: LogEntry) -> None:
        """Take an entry of an adapter, which may say why its platform does not work."""
        if is_adapter(entry.level, entry.logger):
            self._new.append(entry)
            if len(self._new) >= _MOST_NEW:
                self._judge()

    def reason(self, platform: str, at: float) -> Quote | None:
        """Return what the adapter of a platform said shortly before then."""
        self._judge()
        failure = self._said.get(platform.lower())
        return failure if failure and -5.0 <= at - failure.entry.at <= _BEFORE else None

    def _judge(self) -> None:
        """Keep the last entry of each platform that says why it does not work."""
        for entry in self._new:
            match = _LOGGER.match(entry.logger)
            name = next(filter(None, match.groups()), "") if match else ""
            if not name or name in _NOT_PLATFORMS or _OTHERS.match(entry.text):
                continue
            own = _PREFIX.sub("", entry.text, count=1).partition(": ")[0]
            if _REASON.search(own[:_LONGEST]):
                self._said[name] = Quote(entry, entry.text.split("\n")[0][:_MOST])
        self._new.clear()


def is_adapter(level: str, logger: str) -> bool:
    """Tell whether entries of this level and logger may be a reason."""
    return level in _SERIOUS and logger.startswith(_PREFIXES)


QUOTES = 3
DAY = 86_400.0
MOST_ATTEMPTS = 100
"""Sessions of one incident whose end is awaited."""


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
    reason: Quote | None = None
    """What the platform's adapter said shortly before, if the rule asks for it."""
    doubtful: float = 0.0
    """When the log that would record its end starts, if that is after the incident; else 0."""
    rise: Rise | None = None
    """The rate of the lines, if they are reported only because it has risen."""
    answered_by: str = ""
    """Who answered the last message in its place, such as a fallback model; "" if nobody did."""
    about_fallback: str = ""
    """The fallback that the lines are about, if they are not about the main model."""
    caused_by: str = ""
    """The code of the cause that its lines name, if another incident is about that."""


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
        self.reason: Quote | None = None
        self.blame: Blame | None = None
        """The cause that the last line with a cause names, if the rule does not say it."""
        self.reason_named: Blame | None = None
        """The cause that the last line with a cause names, if the rule does not say why."""
        self.failure: Key | None = None
        """What the last line says has failed."""
        self.waiting: deque[Match] = deque(maxlen=100)
        """Lines that count only if a `followed_by` line comes after them."""
        self.attempts: dict[str, None] = {}
        """The sessions whose last attempt has not ended yet, the oldest first."""
        self.replaced: dict[str, None] = {}
        """The sessions whose message is being answered by another model."""
        self.outcome: str | None = None
        """How the last message that ended went: "" if Hermes gave up, else who answered it."""

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
        self.attempts.pop(match.entry.session, None)
        self.attempts[match.entry.session] = None
        self.replaced.pop(match.entry.session, None)
        _limit(self.attempts)
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

    def give_up(self, session: str) -> None:
        """Note that Hermes gave up on the message of a session that this was an attempt for."""
        if session in self.attempts:
            del self.attempts[session]
            self.outcome = ""

    def answer(self, match: Match) -> bool:
        """Note an answer. Return True if another model gave it in place of the failed attempt.

        A line with a provider is one call of a message; a line without one ends the message.
        """
        session, call = match.entry.session, "provider" in match.fields
        if call and all(
            self.fields.get(name, value) == value for name, value in match.fields.items()
        ):
            return False  # a retry of the same model was answered
        if session in self.attempts:
            del self.attempts[session]
            named = (match.fields.get(name) for name in ("provider", "model"))
            self.outcome = ", ".join(filter(None, named)) or "another model"
        elif session not in self.replaced:
            return False
        if call:
            self.replaced[session] = None
        else:
            self.replaced.pop(session, None)
        _limit(self.replaced)
        return True

    def agrees(self, fields: Mapping[str, str]) -> bool:
        """Tell whether a line is about the same thing, judged by the fields that both have.

        A line without any field that distinguishes incidents is compared with the last line.
        """
        known = self.key
        if not any(name in fields for name in known):
            known = {name: value for name, value in self.fields.items() if name in KEYS}
        return all(fields.get(name, value) == value for name, value in known.items())

    def to_incident(self, *, cleared_at: float | None, pending: bool = False) -> Incident:
        quotes = (*self.begin, *self.end)
        last = self.times[-1]
        incident = Incident(
            self.rule, self.key, self.fields, self.first, last, self.count, quotes,
            cleared_at, pending, self.reason, answered_by=self.outcome or "",
        )  # fmt: skip
        return _of_cause(incident, self.blame) if self.blame and not self.blame.beside else incident


def _of_cause(incident: Incident, blame: Blame) -> Incident:
    """Return the incident as one of the cause that its lines name."""
    rule = blamed(incident.rule, blame)
    return incident._replace(rule=rule, fields={**incident.fields, **blame.fields})


def _limit(sessions: dict[str, None]) -> None:
    """Forget the oldest session if there are too many."""
    if len(sessions) > MOST_ATTEMPTS:
        del sessions[next(iter(sessions))]


def key_names(rule: Rule) -> Sequence[str]:
    """Return the names of the fields that distinguish the incidents of a rule."""
    taken = rule.per_session or "(?P<session>" in rule.line.pattern
    names = [name for name in KEYS if name in rule.incident_by or not rule.incident_by]
    return names if taken else [name for name in names if name != "session"]


def all_fields(match: Match) -> dict[str, str]:
    """Return the fields of a line together with those that the rule and the entry add."""
    fields = dict(match.fields)
    if match.rule.platform:
        fields.setdefault("platform", match.rule.platform)
    if "platform" in fields:  # [Telegram] and telegram are the same
        fields["platform"] = fields["platform"].lower()
    if match.rule.per_session and match.entry.session:
        fields.setdefault("session", match.entry.session)
    return fields
