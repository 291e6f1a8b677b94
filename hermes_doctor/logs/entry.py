"""The entry of a log, whatever its source."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple


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
