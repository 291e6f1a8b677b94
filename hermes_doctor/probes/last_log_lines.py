"""The latest lines that the running gateway wrote into its log.

A bounded look at the end of logs/gateway.log, for what the state file does not keep: with which
code a platform closed a connection, and whether it came back.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs import tail

TAIL = 256 * 1024
_START = "Starting Hermes Gateway"


class Word(NamedTuple):
    """One line. Its text may hold anything: never shown, only matched."""

    at: datetime
    logger: str
    text: str


def read(home: Home, started_at: datetime) -> list[Word]:
    """What the process that began then has written last, oldest first."""
    found: list[Word] = []
    for entry in tail.entries(home, "gateway.log", TAIL, since=started_at.timestamp()):
        if entry.text.startswith(_START):
            found = []
        found.append(Word(datetime.fromtimestamp(entry.at, UTC), entry.logger, entry.text))
    return found
