"""Data classes for log rules and explanations, their packed form, and the releases they are for."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
KINDS = ("log", "journal", "stderr", "exit-diary", "update")
PRINTED = "printed"
"""The source of rules about what a program prints, which is in the journal or in a file."""
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

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds of entries that its lines are."""
        return ("journal", "stderr") if self.source == PRINTED else (self.source,)

    @property
    def lines(self) -> Sequence[LinePattern]:
        """All lines that the rule looks for."""
        followed_by = (self.followed_by,) if self.followed_by else ()
        lists = (self.cleared_by, self.given_up_by, self.answered_by)
        return (self.line, *followed_by, *itertools.chain(*lists))

    def with_lines(self, make: Callable[[LinePattern], Any]) -> Rule:
        """Return the rule with what is made of each of its lines."""
        return self._replace(
            line=make(self.line),
            followed_by=make(self.followed_by) if self.followed_by else None,
            cleared_by=[make(line_pattern) for line_pattern in self.cleared_by],
            given_up_by=[make(one) for one in self.given_up_by],
            answered_by=[make(one) for one in self.answered_by],
        )


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


def pack(rule: Rule, lines: dict[str, int]) -> list[Any]:
    """Convert a rule to a list that JSON can store; a line of rules is its number in `lines`.

    Many rules share their lines, such as those that clear them.
    """
    return _packed(rule.with_lines(lambda line: lines.setdefault(json_of(line), len(lines))))


def json_of(value: LinePattern | Explanation) -> str:
    """Convert a line or an explanation to JSON."""
    import json

    return json.dumps(_packed(value))


def _packed(value: Rule | LinePattern | Explanation) -> list[Any]:
    """Return the fields as JSON stores them, without those at the end that are the default."""
    packed: list[Any] = _plain(value)
    for name in reversed(value._fields):
        if packed[-1] != _plain(value._field_defaults.get(name, ...)):
            break
        packed.pop()
    return packed


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value


_LINE, _FOLLOWED_BY = map(Rule._fields.index, ("line", "followed_by"))
_LISTS = tuple(map(Rule._fields.index, ("cleared_by", "given_up_by", "answered_by")))


def unpack(values: list[Any], lines: Sequence[LinePattern]) -> Rule:
    """Rebuild a rule from its packed form, whose list is modified."""
    count = len(values)
    values[_LINE] = lines[values[_LINE]]
    if count > _FOLLOWED_BY and values[_FOLLOWED_BY] is not None:
        values[_FOLLOWED_BY] = lines[values[_FOLLOWED_BY]]
    for place in _LISTS:
        if count > place:
            values[place] = [lines[number] for number in values[place]]
    return Rule(*values)


_PART = re.compile(r"([<>]=?|==|!=)([\d.]+)")
_TELLS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def applies_to(spec: str, release: tuple[int, ...] | None) -> bool:
    """Tell whether the rule applies to a release; every rule applies to an unknown one."""
    if not spec or release is None:
        return True
    return all(_TELLS[how](_padded(release), _parsed(other)) for how, other in _PART.findall(spec))


def _parsed(text: str) -> tuple[int, ...]:
    return _padded(tuple(int(part) for part in text.split(".")))


def _padded(release: tuple[int, ...]) -> tuple[int, ...]:
    return (*release, 0, 0, 0)[:3]
