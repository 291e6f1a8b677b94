"""How a file's lines are read: when each was written, and what entries they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs.block_reader import Lines
from hermes_doctor.logs.clock import Clock
from hermes_doctor.logs.entry import Entry

Wanted = Callable[[str, str], bool]
"""Whether anybody asks for entries of a level and a logger."""

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LONG = 16 * 1024
"""A line's text is cut after so many bytes."""
MORE_LINES = 200
MORE_BYTES = 64 * 1024
"""What is kept of the lines that follow an entry."""


class Span(NamedTuple):
    """Which entries are asked for."""

    since: float
    until: float = float("inf")
    wanted: Wanted | None = None

    def has(self, at: float, level: str, logger: str) -> bool:
        """Whether one with these is."""
        return self.since <= at <= self.until and (
            self.wanted is None or self.wanted(level, logger)
        )


class Format(NamedTuple):
    """One way of writing a log."""

    kind: str
    """What its entries are, as in `Entry.kind`."""
    local: Callable[[bytes], float | None]
    """What the clock showed, as if it had been UTC, when a line was written; None: it says not."""
    parse: Callable[[Lines, Clock, Span, str, str], Iterator[Entry]]
    """The entries of some lines: their clock, which are asked for, their source and kind."""
    utc: bool = False
    """Whether its times are UTC as they stand."""


def text(line: bytes) -> str:
    """A line as text: of bounded length, whatever bytes are in it."""
    try:
        return line[:LONG].decode()  # naming an encoding makes it slower
    except UnicodeDecodeError:
        return line[:LONG].decode("utf-8", "replace")
