"""Parses durations and budgets that an operator types."""

from __future__ import annotations

import re

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
MAX_DURATION = 30 * 86400.0
"""Longest duration in seconds: a watch that runs more rarely makes no sense."""
_SPAN = re.compile(r"([0-9]{1,7}(?:\.[0-9]{1,3})?) ?(s|m|min|h|d|)")


class Budget(NamedTuple):
    """How many repairs are allowed within how many seconds."""

    limit: int
    period: float


def parse_seconds(
    given: str, option: str, *, least: float = 0.0, most: float = MAX_DURATION
) -> float:
    """Parse `30`, `30s`, `10m`, `2h` or `7d` into seconds."""
    match = _SPAN.fullmatch(given.strip().lower())
    found = float(match[1]) * _UNITS[match[2]] if match else -1.0
    if not least <= found <= most:
        raise Trouble(
            "{option} needs a time from {least:g}s to {most:g}d, such as 30s, 10m or "
            "2h; got {given!r}.",
            option=option,
            least=least,
            most=most / 86400,
            given=given,
        )
    return found


def parse_budget(given: str) -> Budget:
    """Parse `3/30m`: at most three in half an hour."""
    count, slash, period = given.partition("/")
    if (
        not slash
        or not count.strip().isdecimal()
        or not count.isascii()
        or not 0 < int(count) <= 1000
    ):
        raise Trouble(
            "--budget needs a number and a time, such as 3/30m; got {given!r}.", given=given
        )
    return Budget(int(count), parse_seconds(period, "--budget", least=60.0))


def format_duration(seconds: float) -> str:
    for size, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"
