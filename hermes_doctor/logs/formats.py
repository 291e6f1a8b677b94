"""Describe how a file's lines are parsed: their time, and the entries they form."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs.block_reader import Lines
from hermes_doctor.logs.clock import LogClock
from hermes_doctor.logs.entry import LogEntry

Wanted = Callable[[str, str], bool]
"""Tells whether entries of a level and a logger are wanted."""

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LONG = 16 * 1024
"""The text of a line is cut after this many bytes."""
MORE_LINES = 200
MORE_BYTES = 64 * 1024
"""How much is kept of the lines that follow an entry."""


class LogWindow(NamedTuple):
    """The time span and filter of the entries to read."""

    since: float
    until: float = float("inf")
    wanted: Wanted | None = None

    def has(self, at: float, level: str, logger: str) -> bool:
        """Tell whether an entry with these values is wanted."""
        return self.since <= at <= self.until and (
            self.wanted is None or self.wanted(level, logger)
        )


class Format(NamedTuple):
    """A log format."""

    kind: str
    """The kind of its entries, as in `Entry.kind`."""
    local: Callable[[bytes], float | None]
    """Parses a line's local time as if it were UTC; None if it has none."""
    parse: Callable[[Lines, LogClock, LogWindow, str, str], Iterator[LogEntry]]
    """Parses lines into entries, given their clock, the span, their source and kind."""
    utc: bool = False
    """Whether its times are UTC."""


def text(line: bytes) -> str:
    """Decode a line of any bytes, cut to a maximum length."""
    try:
        return line[:LONG].decode()  # faster than naming an encoding
    except UnicodeDecodeError:
        return line[:LONG].decode("utf-8", "replace")
