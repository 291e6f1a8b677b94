"""The entry of a log whatever its source, and how a file's lines are parsed into entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.logs.block_reader import Lines
from hermes_doctor.hermes.logs.clock import LogClock


class LogEntry(NamedTuple):
    """A log entry with its following lines, whose text is never shown whole."""

    at: float
    """The time in seconds since 1970, UTC."""
    level: str
    """DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    logger: str
    """Empty where the source has none."""
    text: str
    """The message without time, level and logger."""
    session: str = ""
    """The tag that Hermes puts before the logger while it answers."""
    more: tuple[str, ...] = ()
    """The following lines: a traceback or the rest of a long message. Their number is limited."""
    source: str = ""
    """The file's name in the home, or `journal`, `stderr`."""
    offset: int = 0
    """The byte in the file, or the line of another source."""
    kind: str = "log"
    """log, journal, stderr, exit-diary or update."""


class Unread(NamedTuple):
    """A source that could not be read, or only in part, and why."""

    source: str
    why: str
    partly: bool = False
    """Only a limited amount was read; older parts of the window were left out."""


Wanted = Callable[[str, str], bool]
"""Tells whether entries of a level and a logger are wanted."""
WantedSince = Callable[[str, str], float]
"""Tells since when entries of a level and a logger are wanted."""

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
    wanted_since: WantedSince | None = None
    """Says of which entries the older ones are not wanted."""

    def has(self, at: float, level: str, logger: str) -> bool:
        """Tell whether an entry with these values is wanted."""
        return (
            self.since <= at <= self.until
            and (self.wanted is None or self.wanted(level, logger))
            and (self.wanted_since is None or self.wanted_since(level, logger) <= at)
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


def decode_line(line: bytes) -> str:
    """Decode a line of any bytes, cut to a maximum length."""
    try:
        return line[:LONG].decode()  # faster than naming an encoding
    except UnicodeDecodeError:
        return line[:LONG].decode("utf-8", "replace")
