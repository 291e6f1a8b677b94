"""Times of the history: whole seconds in UTC, stored as text that sorts by time."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.model import Trouble

HOUR, DAY = 3600, 86400
LAST = 253402300799
"""The last second of the year 9999."""


def to_text(moment: int) -> str:
    """A moment as `2026-11-17T04:13:05Z`."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def from_text(stored: str) -> int:
    """The moment of a stored text; ValueError if it is not one."""
    if len(stored) != 20 or stored[-1] != "Z":
        raise ValueError("not a time of a history")
    return int(datetime.fromisoformat(stored).timestamp())


def whole(moment: datetime) -> int:
    """A time of a report in whole seconds; Trouble if no history can contain it."""
    seconds = int(moment.timestamp())
    if not 0 <= seconds <= LAST - DAY:
        raise Trouble("The clock of this machine shows an impossible time. Set it first.")
    return seconds


def hour_of(moment: int) -> int:
    """The start of the hour of a moment."""
    return moment - moment % HOUR
