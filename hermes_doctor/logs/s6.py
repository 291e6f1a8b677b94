"""Parse the logs of s6-log in a container, in which every line has its own time.

2026-11-15 00:35:12.118394012  what was printed        (its `T`, local time)
@400000006917f5b0070e6c1c what was printed             (its `t`, TAI)
"""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.lazy import pattern
from hermes_doctor.logs import output
from hermes_doctor.logs.block_reader import Lines
from hermes_doctor.logs.clock import LogClock, seconds
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.logs.formats import Format, LogWindow, text

_LOCAL = pattern(rb"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)\.(\d{1,9})(?: {1,2}|$)")
_TAI = pattern(rb"@([0-9a-f]{16})([0-9a-f]{8})(?: |$)")
_EPOCH = 2**62
_LEAP = 37
"""Seconds that TAI has been ahead of UTC since 2017."""


def local(line: bytes) -> float | None:
    """Parse the local time at the start of a line."""
    match = _LOCAL.match(line)
    whole = seconds(match[1]) if match else None
    return None if match is None or whole is None else whole + float(b"." + match[2])


def _parse(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    return output.entries(_lines(lines, clock), span, source, kind)


def _lines(lines: Lines, clock: LogClock) -> Iterator[output.OutputLine]:
    for begin, block in lines:
        offset = begin
        for line in block:
            if head := _TAI.match(line):
                at = int(head[1], 16) - _EPOCH - _LEAP + int(head[2], 16) / 1e9
                yield output.OutputLine(at, offset, text(line[head.end() :]))
            elif (head := _LOCAL.match(line)) and (shown := local(line)) is not None:
                yield output.OutputLine(clock.utc(shown), offset, text(line[head.end() :]))
            offset += len(line) + 1


FORMAT = Format("stderr", local, _parse)
