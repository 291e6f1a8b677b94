"""Find users whose messages the bot rejected, from the end of the logs.

Only the id and the platform are taken from a line. The text between them is the name that a
stranger chose: it is ignored, because it may contain anything, even whole log lines.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import read_tail

TAIL = 256 * 1024
WINDOW = 86_400.0
_LOGS = ("errors.log", "gateway.log")
"""Warnings are in both; the first keeps them for longer."""
_WORD = b"nauthorized "
_LINES = (
    pattern(r"Unauthorized user: (?P<user>\S{1,200}) \(.*\) on (?P<platform>\w{1,40})\Z"),
    pattern(
        r"Dropping message from unauthorized user in active session: user=(?P<user>\S{1,200}) "
        r"\(.*\), platform=(?P<platform>\w{1,40}), session="
    ),
    pattern(r"\[(?P<platform>Telegram)\] Blocked unauthorized user (?P<user>\d{1,20}) in chat "),
    pattern(
        r"\[(?P<platform>Discord)\] Unauthorized slash attempt: "
        r"user=.* id=(?P<user>\d{1,20}) channel="
    ),
)


class Refusal(NamedTuple):
    """The rejected messages of one user on one platform."""

    platform: str
    user: str
    times: tuple[float, ...]
    """When they were rejected, oldest first."""
    log: str
    """The log that contains them."""

    @property
    def first(self) -> datetime:
        """The time of the first rejection."""
        return datetime.fromtimestamp(self.times[0], UTC)

    @property
    def last(self) -> datetime:
        """The time of the last rejection."""
        return datetime.fromtimestamp(self.times[-1], UTC)

    def insists(self, count: int, within: float, lately: float) -> bool:
        """Tell whether `count` rejections came in `within` seconds, at most `lately` ago."""
        pairs = zip(self.times, self.times[count - 1 :], strict=False)
        since = time.time() - lately
        return any(later - earlier <= within and later >= since for earlier, later in pairs)


def find(home: Home) -> list[Refusal]:
    """Return every user who was rejected within the last day, latest first."""
    since = time.time() - WINDOW
    times: dict[tuple[str, str], set[float]] = {}
    logs: dict[tuple[str, str], str] = {}
    for name in _LOGS:
        if not _mentions(home, name):
            continue
        from hermes_doctor.hermes.logs import stream

        for entry in stream.last_entries(home, name, TAIL, since=since, wanted=_wanted):
            for line in _LINES:
                if match := line.match(entry.text):
                    who = match["platform"].lower(), match["user"]
                    times.setdefault(who, set()).add(entry.at)
                    logs.setdefault(who, f"logs/{name}")
                    break
    refusals = [Refusal(*who, tuple(sorted(at)), logs[who]) for who, at in times.items()]
    return sorted(refusals, key=lambda one: one.times[-1], reverse=True)


def _mentions(home: Home, name: str) -> bool:
    """Tell whether the log contains any rejection; most logs do not."""
    try:
        return _WORD in read_tail(home / "logs" / name, TAIL)[0]
    except FileNotFoundError:
        return False
    except CouldNotLook:
        return True  # the reader reports why


def _wanted(level: str, _logger: str) -> bool:
    return level == "WARNING"
