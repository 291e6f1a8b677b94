"""Log rules, and which finding explains which, as plain values."""

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
"""What a pattern may take from a line."""
KEYS = ("platform", "account", "session", "job", "task", "board", "provider", "model", "name")
"""What tells one incident of a rule from another."""


class Line(NamedTuple):
    """What one line looks like."""

    pattern: str
    literals: Sequence[str]
    """One of them is in every text that matches; they are looked for first, that is cheap."""
    level: str = "WARNING"
    loggers: Sequence[str] = ()
    traceback: bool = False


class Rule(NamedTuple):
    """What lines of one kind mean."""

    id: str
    code: str
    severity: str
    title: str
    line: Line
    detail: str = ""
    platform: str = ""
    source: str = "log"
    versions: str = ""
    window: float = 7200.0
    threshold: int = 1
    within: float = 0.0
    """The threshold must be reached in so many seconds; 0 for the whole window."""
    followed_by: Line | None = None
    follows_within: float = 0.0
    cleared_by: Sequence[Line] = ()
    settle: float = 0.0
    per_session: bool = False
    outlives_start: bool = False
    unless_ok: Sequence[str] = ()
    fix: str | None = None


class Cause(NamedTuple):
    """A code, and those that follow from it."""

    code: str
    explains: Sequence[str]
    because: str
    """One sentence, shown with what follows."""
    first: bool = False
    """Only when it began before what it explains, as far as both are known."""
    slack: float = 600.0
    """It may have been noticed so much later."""
    same_platform: bool = False


def packed(rule: Rule | Cause) -> list[Any]:
    """A rule as JSON can hold it."""
    return [_plain(value) for value in rule]


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, (tuple, list)) else value


_LINE, _FOLLOWED_BY, _CLEARED_BY = map(Rule._fields.index, ("line", "followed_by", "cleared_by"))


def unpacked(values: list[Any]) -> Rule:
    """The rule that was packed; what was given is used up."""
    values[_LINE] = Line(*values[_LINE])
    if values[_FOLLOWED_BY]:
        values[_FOLLOWED_BY] = Line(*values[_FOLLOWED_BY])
    values[_CLEARED_BY] = [Line(*one) for one in values[_CLEARED_BY]]
    return Rule(*values)
