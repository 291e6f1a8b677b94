"""One entry of a log, wherever it came from."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple


class Entry(NamedTuple):
    """A line with what belongs to it. Its text may hold anything: matched, never shown whole."""

    at: float
    """When, in seconds since 1970, UTC."""
    level: str
    """DEBUG, INFO, WARNING, ERROR or CRITICAL."""
    logger: str
    """Empty where the source has none."""
    text: str
    """What was said, without time, level and logger."""
    session: str = ""
    """The tag that Hermes puts before the logger while it answers."""
    more: tuple[str, ...] = ()
    """The lines that follow: a traceback, the rest of a long message. A bounded number."""
    source: str = ""
    """Where it stands: a file's name in the home, or `journal`, `stderr`."""
    offset: int = 0
    """At which byte of the file, or which line of another source."""
    kind: str = "log"
    """log, journal, stderr, exit-diary or update."""


class Unread(NamedTuple):
    """A source that could not be read, or only in part, and why."""

    source: str
    why: str
    partly: bool = False
    """It was read up to a bound; what lies further back in the window was left out."""
