"""What a gateway prints: lines of its log without a time, tracebacks, and plain words.

Whoever takes the output down (journald, a container engine, s6-log) dates every line for itself,
so that a traceback arrives as thirty lines. Here they become one entry again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs.entry import Entry
from hermes_doctor.logs.formats import LEVELS, MORE_BYTES, MORE_LINES, Span

_HEAD = pattern(
    rf"(?P<level>{'|'.join(LEVELS)})(?: \[(?P<session>[^\]\s]+)\])? "
    r"(?P<logger>[A-Za-z_][\w.\-]*): (?P<text>.*)",
    re.ASCII | re.DOTALL,
)
_TRACEBACK = ("Traceback (most recent call last):", "  + Exception Group Traceback")
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_FATAL = ("Fatal Python error:", "Segmentation fault")
_APART = 2.0
"""Seconds between two lines that belong together."""
PLAIN = "INFO"
"""The level of words that come without one."""


class Line(NamedTuple):
    """One line of output, as it was taken down."""

    at: float
    offset: int
    text: str
    level: str = PLAIN
    """What it counts as if it does not say."""
    logger: str = ""
    """Who wrote it, if not the gateway."""


class _Gathered:
    """An entry that may go on."""

    def __init__(self, line: Line) -> None:
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

    def takes(self, line: Line) -> bool:
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
            ours = self.in_traceback and not levelled(text)
            self.in_traceback = False  # this was the error itself
        if ours:
            self.last = line
            if self.room > 0 and len(self.more) < MORE_LINES:
                self.more.append(text[: self.room])
                self.room -= len(text) + 1
        return ours

    def entry(self, source: str, kind: str) -> Entry:
        """What was gathered."""
        return Entry(
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


def entries(lines: Iterable[Line], span: Span, source: str, kind: str) -> Iterator[Entry]:
    """Output put together again, as far as it is asked for."""
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


def levelled(text: str) -> bool:
    """Whether a line is one of the gateway's log."""
    return _HEAD.fullmatch(text) is not None
