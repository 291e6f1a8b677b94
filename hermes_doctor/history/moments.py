"""Times of the history: whole seconds in UTC, stored as text that sorts by time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.model import Trouble

HOUR, DAY = 3600, 86400
LAST = 253402300799
"""The last second of the year 9999."""


class ImpossibleValue(ValueError):
    """A stored value that no history contains."""


def to_text(moment: int) -> str:
    """A moment as `2026-11-17T04:13:05Z`."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def from_text(stored: str) -> int:
    """The moment of a stored text; ImpossibleValue if it is not one."""
    if not isinstance(stored, str) or len(stored) != 20 or stored[-1] != "Z":
        raise ImpossibleValue("not a time of a history")
    try:
        return int(datetime.fromisoformat(stored).timestamp())
    except (ValueError, OverflowError):
        raise ImpossibleValue("not a time of a history") from None


def number(stored: object) -> int:
    """A stored number, 0 for none; ImpossibleValue if no history contains it."""
    if stored is None:
        return 0
    if not isinstance(stored, int) or not 0 <= stored <= LAST:
        raise ImpossibleValue("not a number of a history")
    return stored


def to_seconds(moment: datetime) -> int:
    """A time of a report in whole seconds; Trouble if no history can contain it."""
    seconds = int(moment.timestamp())
    if not 0 <= seconds <= LAST - DAY:
        raise Trouble("The clock of this machine shows an impossible time. Set it first.")
    return seconds


def hour_of(moment: int) -> int:
    """The start of the hour of a moment."""
    return moment - moment % HOUR


def split_by_hour(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The hours of a time, each with its seconds in that time."""
    while start < end:
        hour = hour_of(start)
        until = min(end, hour + HOUR)
        yield hour, until - start
        start = until
