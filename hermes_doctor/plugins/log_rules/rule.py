"""Data classes for log rules and explanations, and their packed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_doctor.lazy import NamedTuple

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
KINDS = ("log", "journal", "stderr", "exit-diary", "update")
FIELDS = (
    "platform", "account", "session", "user", "channel", "model", "provider", "host", "path",
    "job", "task", "board", "name", "count", "number", "seconds", "reason",
)  # fmt: skip
"""The group names that a pattern may use."""
KEYS = ("platform", "account", "session", "job", "task", "board", "provider", "model", "name")
"""The fields that distinguish the incidents of a rule."""


class LinePattern(NamedTuple):
    """A pattern for one log line, with the loggers and the level it applies to."""

    pattern: str
    literals: Sequence[str]
    """One of them is in every matching text; they are searched first because that is cheap."""
    level: str = "WARNING"
    loggers: Sequence[str] = ()
    traceback: bool = False
    exception: bool = False


class Rule(NamedTuple):
    """A log rule: which lines it matches and which finding it reports."""

    id: str
    code: str
    severity: str
    title: str
    line: LinePattern
    detail: str = ""
    platform: str = ""
    source: str = "log"
    versions: str = ""
    window: float = 7200.0
    threshold: int = 1
    within: float = 0.0
    """The threshold must be reached within this many seconds; 0 means the whole window."""
    followed_by: LinePattern | None = None
    follows_within: float = 0.0
    cleared_by: Sequence[LinePattern] = ()
    settle: float = 0.0
    per_session: bool = False
    outlives_start: bool = False
    unless_ok: Sequence[str] = ()
    fix: str | None = None
    next: str = ""
    yields_to: Sequence[str] = ()
    """Rules that say more: if one of them has an open incident about the same thing, it wins."""
    only_set_up: bool = False
    """Counts only for a platform that the gateway of this home starts."""
    adapter: bool = False
    """Whether the last warning of the platform's adapter before the line is shown as the reason."""
    spread: float = 0.0
    """Seconds that must be between the first and the last line: one bad moment is not enough."""
    days: int = 0
    """The lines must be on at least this many different days, each of 24 hours before now."""
    otherwise: bool = False
    """Counts only lines that no other rule matches."""
    database: str = ""
    """The database that the line is about: what `unless_ok` says about it decides at once."""
    given_up_by: Sequence[LinePattern] = ()
    """Lines of the same session that show that Hermes gave up: there is nothing to wait for."""
    answered_by: Sequence[LinePattern] = ()
    """Lines that show that a message was answered, this one or another."""
    incident_by: Sequence[str] = ()
    """The fields that distinguish its incidents; empty for all of `KEYS` that its pattern has."""
    counts_lives: bool = False
    """It counts starts or ends of the gateway, so those of this tool do not count."""
    unknown: bool = False
    """Counts only lines that no other rule matches and that name no known cause."""
    effect_of: str = ""
    """The code whose effect on the bot it has, if not that of its own code."""
    effect: Sequence[str] = ()
    """The part of the bot that it breaks and a few words, if its code does not say that."""


class Explanation(NamedTuple):
    """A code and the codes of findings that it explains."""

    code: str
    explains: Sequence[str]
    because: str
    """One sentence, shown with the explained findings."""
    first: bool = False
    """Applies only if it started before what it explains, where both times are known."""
    slack: float = 600.0
    """Seconds by which it may have been noticed later."""
    same_platform: bool = False
    database: str = ""
    """Applies only if it is about this database."""


def pack(rule: Rule | Explanation) -> list[Any]:
    """Convert a rule or explanation to a list that JSON can store."""
    return [_plain(value) for value in rule]


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value


_LINE, _FOLLOWED_BY = map(Rule._fields.index, ("line", "followed_by"))
_LISTS = tuple(map(Rule._fields.index, ("cleared_by", "given_up_by", "answered_by")))


def unpack(values: list[Any]) -> Rule:
    """Rebuild a rule from its packed form, whose list is modified."""
    values[_LINE] = LinePattern(*values[_LINE])
    if values[_FOLLOWED_BY]:
        values[_FOLLOWED_BY] = LinePattern(*values[_FOLLOWED_BY])
    for place in _LISTS:
        values[place] = [LinePattern(*one) for one in values[place]]
    return Rule(*values)
