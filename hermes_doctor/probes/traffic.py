"""When the last message came in and the last answer went out, told from the end of the log."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs import tail

TAIL = 256 * 1024
_IN = "inbound message: platform="
_OUT = pattern(r"response ready: platform=|\[[^\]]{1,30}\] Sending response \(")
"""What 0.13 to 0.19 write; what a user wrote stands further back in the line."""


class Traffic(NamedTuple):
    """The latest of each kind."""

    last_in: datetime | None = None
    last_out: datetime | None = None
    waits_since: datetime | None = None
    """When the oldest message came in that nothing was answered after."""


def read(home: Home) -> Traffic:
    """Look at the end of the log, and at the one before it where that was rotated just now."""
    came: float | None = None
    answered: float | None = None
    waiting: float | None = None
    for entry in tail.entries(home, "gateway.log", TAIL, wanted=_of_gateway):
        if entry.text.startswith(_IN):
            came = entry.at
            waiting = entry.at if waiting is None else waiting
        elif _OUT.match(entry.text):
            answered, waiting = entry.at, None
    return Traffic(_moment(came), _moment(answered), _moment(waiting))


def _of_gateway(_level: str, logger: str) -> bool:
    return logger.startswith("gateway.")


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)
