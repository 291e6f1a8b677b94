"""Group a gateway's printed lines into entries: log lines, tracebacks and plain text.

What records the output (journald, a container engine, s6-log) dates every line separately, so a
traceback arrives as thirty lines. They become one entry again here. The lines of s6-log are

    2026-11-15 00:35:12.118394012  what was printed        (its `T`, local time)
    @400000006917f5b0070e6c1c what was printed             (its `t`, TAI)

Files without times, as launchd writes them, are dated with their mtime. Only their last lines are
as old as the file. Log lines of the gateway are also in its other files, with their time, so
everything up to the last of them is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.hermes.logs.block_reader import Lines, OpenLog
from hermes_doctor.hermes.logs.clock import LogClock, seconds
from hermes_doctor.hermes.logs.entry import (
    LEVELS,
    MORE_BYTES,
    MORE_LINES,
    Format,
    LogEntry,
    LogWindow,
    Unread,
    decode_line,
)
from hermes_doctor.hermes.logs.rotated import NoteFile, ReportUnread

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


def output_entries(
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


_LOCAL = pattern(rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\.(\d{1,9})(?: {1,2}|$)")
_TAI = pattern(rb"@([0-9a-f]{16})([0-9a-f]{8})(?: |$)")
_EPOCH = 2**62
_LEAP = 37
"""Seconds that TAI has been ahead of UTC since 2017."""


def s6_time(line: bytes) -> float | None:
    """Parse the local time at the start of a line."""
    match = _LOCAL.match(line)
    whole = seconds(match[1]) if match else None
    return None if match is None or whole is None else whole + float(b"." + match[2])


def _parse_s6(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    return output_entries(_s6_lines(lines, clock), span, source, kind)


def _s6_lines(lines: Lines, clock: LogClock) -> Iterator[OutputLine]:
    for begin, block in lines:
        offset = begin
        for line in block:
            if head := _TAI.match(line):
                at = int(head[1], 16) - _EPOCH - _LEAP + int(head[2], 16) / 1e9
                yield OutputLine(at, offset, decode_line(line[head.end() :]))
            elif (head := _LOCAL.match(line)) and (shown := s6_time(line)) is not None:
                yield OutputLine(clock.utc(shown), offset, decode_line(line[head.end() :]))
            offset += len(line) + 1


S6_LOG = Format("stderr", s6_time, _parse_s6)

_TAIL = 64 * 1024


def undated_entries(
    path: Path, name: str, span: LogWindow, report_unread: ReportUnread, note: NoteFile
) -> Iterator[LogEntry]:
    """Yield the last lines, dated with the file's mtime."""
    try:
        file = OpenLog(path, name)
    except FileNotFoundError:
        return
    except CouldNotLook as why:
        report_unread(Unread(name, str(why)))
        return
    try:
        if file.written < span.since:
            return
        start = max(0, file.size - _TAIL)
        data = file.read(start, _TAIL)
    finally:
        file.close()
    if why_not := file.lacks():
        report_unread(Unread(name, why_not))
    note(name, file.identity)
    kept: list[OutputLine] = []
    offset = start
    for number, line in enumerate(data.split(b"\n")):
        text = line.decode("utf-8", "replace").rstrip("\r")
        if is_log_line(text):
            kept = []
        elif (text.strip() or kept) and (number or not start):
            kept.append(OutputLine(file.written, offset, text))
        offset += len(line) + 1
    yield from output_entries(kept, span, name, "stderr")
