"""Read what the ends of the logs tell: last lines, last messages and answers, rejected users.

Messages of chat platforms are in gateway.log. Those of the API server and of scheduled jobs are
only in agent.log, as turns of the agent; the command line of Hermes writes its turns there, too.

Of the line about a rejected user, only the id and the platform are taken. The text between them is
the name that a stranger chose: it may contain anything, even whole log lines.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, read_tail
from hermes_doctor.hermes.logs import stream

TAIL = 256 * 1024
FURTHER = 4 * MEGABYTE
"""Bytes in which a start is searched: a gateway may have written much since."""
_RUN, _START = "gateway.run", "Starting Hermes Gateway"
_SHARED = ("agent.log", "errors.log")
"""Logs that the command line of Hermes writes to as well."""
_ONLY_GATEWAY = ("gateway.run", "gateway.platforms")
"""Loggers that only a gateway uses."""


class GatewayLogLine(NamedTuple):
    """A log line, of whose text only redacted parts may be shown."""

    at: datetime
    logger: str
    text: str
    level: str = ""


def read_last_lines(home: Home, started_at: datetime) -> list[GatewayLogLine]:
    """Return the latest lines of the process that started then, oldest first."""
    gateway_log_lines: list[GatewayLogLine] = []
    for entry in stream.last_entries(home, "gateway.log", TAIL, since=started_at.timestamp()):
        if entry.text.startswith(_START):
            gateway_log_lines = []
        gateway_log_lines.append(
            GatewayLogLine(
                datetime.fromtimestamp(entry.at, UTC), entry.logger, entry.text, entry.level
            )
        )
    return gateway_log_lines


def last_start(home: Home, since: datetime) -> datetime | None:
    """Return when a gateway last started after `since`, by its first line in the log."""
    last = None
    for entry in stream.last_entries(home, "gateway.log", FURTHER, since=since.timestamp()):
        if entry.logger == _RUN and entry.text.startswith(_START):
            last = datetime.fromtimestamp(entry.at, UTC)
    return last


def log_with_gateway_lines(home: Home) -> str:
    """Return the general log in which a gateway has written a line; "" if there is none."""
    for name in _SHARED:
        try:
            entries = stream.last_entries(home, name, TAIL, since=0.0)
            if any(entry.logger.startswith(_ONLY_GATEWAY) for entry in entries):
                return f"logs/{name}"
        except CouldNotLook:
            continue
    return ""


_IN = "inbound message: platform="
_OUT = pattern(r"response ready: platform=|\[[^\]]{1,30}\] Sending response \(")
"""As written by 0.13 to 0.19; the user's words are further back in the line."""
_TURN = pattern(r"conversation turn: session=(\S{1,200}) model=.{0,300}? platform=(\w{1,60}) ")
_ANSWERED = "Turn ended: reason=text_response"
_TURN_LOGGERS = (
    "agent.turn_context",
    "agent.turn_finalizer",
    "agent.conversation_loop",
    "run_agent",
)
"""The first two since 0.17; older releases use the others."""
_NOT_ASKED = frozenset({"cli", "tui", "acp", "subagent", "curator", "unknown"})
"""Turns that nobody asked the gateway for: of the command line, or started by other turns."""


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
    started: datetime | None = None
    """The start of a gateway from which on the lines that were read are complete, if known."""


def read_traffic(home: Home) -> Traffic:
    """Read the end of the log, and that of the previous one if it was just rotated."""
    came: float | None = None
    answered: float | None = None
    waiting: float | None = None
    inbound: dict[str, list[float]] = {}
    first: float | None = None
    last = 0.0
    started: float | None = None
    for entry in stream.last_entries(home, "gateway.log", TAIL, wanted=_of_gateway):
        first, last = entry.at if first is None else first, entry.at
        if entry.text.startswith(_START):
            started = entry.at
        if entry.text.startswith(_IN):
            name = entry.text[len(_IN) :].partition(" ")[0]
            inbound.setdefault(name, []).append(entry.at)
            came = entry.at
            waiting = entry.at if waiting is None else waiting
        elif _OUT.match(entry.text):
            answered, waiting = entry.at, None
    asked, turn_answered, turn_started, is_empty = _read_turns(home)
    return Traffic(
        _moment(_latest(came, asked)),
        _moment(_latest(answered, turn_answered)),
        _moment(waiting),
        {name: tuple(times) for name, times in inbound.items()},
        None if first is None else (first, last),
        _moment(started) if is_empty or turn_started else None,
    )


def _read_turns(home: Home) -> tuple[float | None, float | None, float | None, bool]:
    """When the gateway was last asked, answered and started; and whether there are no lines."""
    asked = answered = started = None
    sessions: set[str] = set()
    is_empty = True
    for entry in stream.last_entries(home, "agent.log", TAIL, wanted=_of_turns):
        is_empty = False
        if entry.text.startswith(_START):
            started = entry.at
        elif (turn := _TURN.match(entry.text)) and turn[2] not in _NOT_ASKED:
            asked = entry.at
            sessions.add(turn[1])
        elif entry.session in sessions and entry.text.startswith(_ANSWERED):
            answered = entry.at
    return asked, answered, started, is_empty


def _latest(*times: float | None) -> float | None:
    return max((at for at in times if at is not None), default=None)


def first_time(home: Home) -> float | None:
    """Return the time of the first line that `read` would read, without reading the others."""
    first = next(stream.last_entries(home, "gateway.log", TAIL, wanted=_of_gateway), None)
    return None if first is None else first.at


def _of_turns(_level: str, logger: str) -> bool:
    return logger in _TURN_LOGGERS or logger == "gateway.run"


def _of_gateway(_level: str, logger: str) -> bool:
    return logger.startswith("gateway.")


def _moment(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


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


def find_refusals(home: Home) -> list[Refusal]:
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
