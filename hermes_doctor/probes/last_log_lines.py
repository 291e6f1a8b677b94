"""Read the latest lines that the running gateway wrote to its log.

They tell what the state file does not keep: with which code a platform closed a connection, and
whether the connection came back. Only the end of logs/gateway.log is read.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs import tail

TAIL = 256 * 1024
_START = "Starting Hermes Gateway"


class GatewayLogLine(NamedTuple):
    """A log line, of whose text only redacted parts may be shown."""

    at: datetime
    logger: str
    text: str


def read(home: Home, started_at: datetime) -> list[GatewayLogLine]:
    """Return the latest lines of the process that started then, oldest first."""
    found: list[GatewayLogLine] = []
    for entry in tail.entries(home, "gateway.log", TAIL, since=started_at.timestamp()):
        if entry.text.startswith(_START):
            found = []
        found.append(
            GatewayLogLine(datetime.fromtimestamp(entry.at, UTC), entry.logger, entry.text)
        )
    return found
