"""Read the times of the last message and the last answer from the end of the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs import tail

TAIL = 256 * 1024
_IN = "inbound message: platform="
_OUT = pattern(r"response ready: platform=|\[[^\]]{1,30}\] Sending response \(")
"""As written by 0.13 to 0.19; the user's words are further back in the line."""


class Traffic(NamedTuple):
    """The times of the last message and the last answer."""

    last_in: datetime | None = None
    last_out: datetime | None = None
    waits_since: datetime | None = None
    """When the oldest message without a later answer came in."""
    inbound: Mapping[str, tuple[float, ...]] = {}
    """When messages came in, by platform, as far as the end of the log tells."""
    covers: tuple[float, float] | None = None
    """The time of the first and the last line that was read."""


def read(home: Home) -> Traffic:
    """Read the end of the log, and that of the previous one if it was just rotated."""
    came: float | None = None
    answered: float | None = None
    waiting: float | None = None
    inbound: dict[str, list[float]] = {}
    first: float | None = None
    last = 0.0
    for entry in tail.entries(home, "gateway.log", TAIL, wanted=_of_gateway):
        first, last = entry.at if first is None else first, entry.at
        if entry.text.startswith(_IN):
            name = entry.text[len(_IN) :].partition(" ")[0]
            inbound.setdefault(name, []).append(entry.at)
            came = entry.at
            waiting = entry.at if waiting is None else waiting
        elif _OUT.match(entry.text):
            answered, waiting = entry.at, None
    if first is None:
        return Traffic()
    return Traffic(
        _moment(came),
        _moment(answered),
        _moment(waiting),
        {name: tuple(times) for name, times in inbound.items()},
        (first, last),
    )


def first_time(home: Home) -> float | None:
    """Return the time of the first line that `read` would read, without reading the others."""
    first = next(tail.entries(home, "gateway.log", TAIL, wanted=_of_gateway), None)
    return None if first is None else first.at


def _of_gateway(_level: str, logger: str) -> bool:
    return logger.startswith("gateway.")


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
