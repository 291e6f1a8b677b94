"""Group a gateway's printed lines into entries: log lines, tracebacks and plain text.

What records the output (journald, a container engine, s6-log) dates every line separately, so a
traceback arrives as thirty lines. They become one entry again here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.logs.formats import LEVELS, MORE_BYTES, MORE_LINES, LogWindow

_HEAD = pattern(
    rf"(?P<level>{'|'.join(LEVELS)})(?: \[(?P<session>[^\]\s]+)\])? "
    r"(?P<logger>[A-Za-z_][\w.\-]*): (?P<text>.*)",
    re.ASCII | re.DOTALL,
)
_TRACEBACK = ("Traceback (most recent call last):", "  + Exception Group Traceback")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_FATAL = ("Fatal Python error:", "Segmentation fault")
_APART = 2.0
"""The maximum number of seconds between two lines of one entry."""
PLAIN = "INFO"
"""The level of lines without one."""


class OutputLine(NamedTuple):
    """A recorded line of output."""

    at: float
    offset: int
    text: str
    level: str = PLAIN
    """The level if the text does not contain one."""
    logger: str = ""
    """The program that wrote it, if not the gateway."""


class _Gathered:
    """An entry under construction."""

    def __init__(self, line: OutputLine) -> None:
        self.levelled = False
        self.level, self.logger, self.text, self.session = line.level, line.logger, line.text, ""
        if match := None if line.logger else _HEAD.fullmatch(line.text):
            self.levelled = True
            self.level, self.logger, self.text = match["level"], match["logger"], match["text"]
            self.session = match["session"] or ""
        self.in_traceback = not line.logger and line.text.startswith(_TRACEBACK)
        if self.in_traceback:
            self.level = "ERROR"
        elif not line.logger and line.text.startswith(_FATAL):
            self.level = "CRITICAL"
        self.first = self.last = line
        self.more: list[str] = []
        self.room = MORE_BYTES

    def takes(self, line: OutputLine) -> bool:
        """Add a line if it belongs to this entry."""
        text = line.text
        if line.logger or self.first.logger or not 0 <= line.at - self.last.at <= _APART:
            return False
        if text.startswith(_TRACEBACK):
            ours = self.levelled or self.in_traceback
            self.in_traceback = ours
        elif text.startswith((" ", "\t")) or not text:
            ours = True
        elif text.startswith(_CHAINED):
            ours = self.in_traceback = bool(self.more)
        else:
            ours = self.in_traceback and not is_log_line(text)
            self.in_traceback = False  # this was the error itself
        if ours:
            self.last = line
            if self.room > 0 and len(self.more) < MORE_LINES:
                self.more.append(text[: self.room])
                self.room -= len(text) + 1
        return ours

    def entry(self, source: str, kind: str) -> LogEntry:
        """Return the finished entry."""
        return LogEntry(
            self.first.at,
            self.level,
            self.logger,
            self.text,
            self.session,
            tuple(self.more),
            source,
            self.first.offset,
            kind,
        )


def entries(
    lines: Iterable[OutputLine], span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Yield the wanted entries of the output."""
    gathered: _Gathered | None = None
    for line in lines:
        if gathered is not None:
            if gathered.takes(line):
                continue
            if span.has(gathered.first.at, gathered.level, gathered.logger):
                yield gathered.entry(source, kind)
        gathered = _Gathered(line)
    if gathered is not None and span.has(gathered.first.at, gathered.level, gathered.logger):
        yield gathered.entry(source, kind)


def is_log_line(text: str) -> bool:
    """Tell whether a line is a log line of the gateway."""
    return _HEAD.fullmatch(text) is not None
