"""How a history is stored: what identifies the file, its columns, its times, and its gaps.

Times are whole seconds in UTC, stored as text that sorts by time. A gap is how long the next record
may take so that the time until then is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hermes_doctor.core.model import Trouble

APPLICATION = 0x48446869
"""SQLite's application id of a history: "HDhi"."""
VERSION = 2
"""SQLite's user version: the number of the newest migration."""


COLUMNS = {
    "homes": (
        *("id", "path", "identity", "boot", "first_seen", "last_seen", "condition"),
        *("counted_until", "spacing", "hermes", "doctor", "gateway", "gateway_started"),
        *("last_run", "steady_since", "pruned", "due"),
    ),
    "episodes": (
        *("id", "home", "code", "subject", "severity", "title", "check", "first_seen"),
        *("last_seen", "ended", "how", "repair", "returns", "options"),
    ),
    "hours": ("home", "hour", "working", "limited", "silent"),
    "marks": ("id", "home", "at", "kind", "what", "code", "subject", "run", "times", "until"),
}
"""The columns of each table."""


class NewerHistory(Trouble):
    """The history was written by a newer hermes-doctor."""


def readable(stored: bytes) -> str:
    """A stored text; a damaged one must not raise an error that only SQLite understands."""
    return stored.decode("utf-8", "replace")


def refuse_newer(version: int) -> None:
    """Raise if a newer hermes-doctor wrote the file; it is not touched then."""
    if version > VERSION:
        raise NewerHistory(
            "The history was written by a newer hermes-doctor, so it is left alone. "
            "Update this one to use it."
        )


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
    return moment - moment % HOUR


def split_by_hour(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The hours of a time, each with its seconds in that time."""
    while start < end:
        hour = hour_of(start)
        until = min(end, hour + HOUR)
        yield hour, until - start
        start = until


EVERY = 300
"""Seconds after which a round without a change is written."""
EVERY_SINGLE = 3600
"""The same for single rounds, which would have to load sqlite-utils each time (0.1 s)."""
SINGLE = 300.0
"""The usual seconds between single checks, those of cron."""
LONGEST_SPACING = 2 * HOUR
"""Single checks further apart than this leave the time between them unknown."""


def longest_gap(interval: float) -> int:
    """Seconds between two rounds that still count as watched: three intervals and a minute."""
    return int(3 * interval + 60)


def longest_single_gap(longest: int, spacing: int) -> int:
    """The same for single checks, which may be up to twice as far apart as the two before."""
    return max(longest, min(2 * spacing, LONGEST_SPACING))
