"""Read the times of the last message and the last answer from the end of the logs.

Messages of chat platforms are in gateway.log. Those of the API server and of scheduled jobs are
only in agent.log, as turns of the agent; the command line of Hermes writes its turns there, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.logs import stream

TAIL = 256 * 1024
_IN = "inbound message: platform="
_OUT = pattern(r"response ready: platform=|\[[^\]]{1,30}\] Sending response \(")
"""As written by 0.13 to 0.19; the user's words are further back in the line."""
_START = "Starting Hermes Gateway"
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


def read(home: Home) -> Traffic:
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
    turns = _read_turns(home)
    return Traffic(
        _moment(_latest(came, turns.asked)),
        _moment(_latest(answered, turns.answered)),
        _moment(waiting),
        {name: tuple(times) for name, times in inbound.items()},
        None if first is None else (first, last),
        _moment(started) if turns.whole or turns.started else None,
    )


class _Turns(NamedTuple):
    """The last turns of the agent that somebody asked the gateway for."""

    asked: float | None
    answered: float | None
    started: float | None
    """The last start of a gateway."""
    whole: bool
    """Whether there is nothing to read."""


def _read_turns(home: Home) -> _Turns:
    asked = answered = started = None
    sessions: set[str] = set()
    whole = True
    for entry in stream.last_entries(home, "agent.log", TAIL, wanted=_of_turns):
        whole = False
        if entry.text.startswith(_START):
            started = entry.at
        elif (turn := _TURN.match(entry.text)) and turn[2] not in _NOT_ASKED:
            asked = entry.at
            sessions.add(turn[1])
        elif entry.session in sessions and entry.text.startswith(_ANSWERED):
            answered = entry.at
    return _Turns(asked, answered, started, whole)


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
