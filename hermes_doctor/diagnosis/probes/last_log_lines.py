"""Read the latest lines that a gateway wrote to its log.

They tell what the state file does not keep: with which code a platform closed a connection, and
whether the connection came back. Only the end of logs/gateway.log is read.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE
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


def read(home: Home, started_at: datetime) -> list[GatewayLogLine]:
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
