"""Parse the log format of Hermes since 0.13: a head line, and continuation lines without a head.

    2026-11-15 00:35:12,118 INFO [20261115_001248_df794ef7] gateway.run: what it says

This code is performance-critical: a window may contain a million lines. What most lines share (the
second, and everything between time and message) is cached, not parsed again. The time of an
unwanted line is not parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.logs.block_reader import Lines
from hermes_doctor.logs.clock import LogClock, seconds
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.logs.formats import LEVELS, MORE_BYTES, MORE_LINES, Format, LogWindow, text

_HEAD = pattern(rf" ({'|'.join(LEVELS)})(?: \[([^\]\s]+)\])? ([A-Za-z_][\w.\-]*)", re.ASCII)
_MILLISECONDS = {b"%03d" % n: n / 1000 for n in range(1000)}
_MOST_HEADS = 20_000
_LONGEST_HEAD = 300
_NEVER = b"no line begins so"


class _Head(NamedTuple):
    level: str
    session: str
    logger: str
    wanted: bool


def local(line: bytes) -> float | None:
    """Parse the time at the start of a line."""
    if line[19:20] != b"," or line[23:24] != b" ":
        return None
    whole, part = seconds(line[:19]), _MILLISECONDS.get(line[20:23])
    return None if whole is None or part is None else whole + part


def parse(
    lines: Lines, clock: LogClock, span: LogWindow, source: str, kind: str
) -> Iterator[LogEntry]:
    """Yield the wanted entries; the continuation lines of others are dropped with them."""
    since, until = span.since, span.until
    heads: dict[bytes, _Head | None] = {}
    new = tuple.__new__  # half the cost of calling the class
    stamp, second = _NEVER, 0.0
    held: tuple[float, str, str, str, str] | None = None
    """The entry that may have continuation lines."""
    there = 0
    more: list[str] = []
    room = MORE_BYTES
    for begin, block in lines:
        offset = begin
        for line in block:
            here = offset
            offset += len(line) + 1
            head = None
            if line[19:20] == b",":
                front, colon, said = line.partition(b": ")
                key = front[23:] if colon else b""
                try:
                    head = heads[key]
                except KeyError:
                    head = _head(key, span, heads)
            if held is None and (head is None or not head.wanted):
                continue
            if head is not None and head.wanted and line[:20] != stamp:
                shown = seconds(line[:19])
                stamp = _NEVER if shown is None else line[:20]
                second = 0.0 if shown is None else clock.utc(shown)
                head = None if shown is None else head
            if head is None or (part := _MILLISECONDS.get(line[20:23])) is None:
                if held is not None and room > 0 and len(more) < MORE_LINES:
                    more.append(text(line[:room]))
                    room -= len(line)
                continue
            if held is not None:
                yield new(LogEntry, (*held, tuple(more), source, there, kind))
                held = None
                if more:
                    more, room = [], MORE_BYTES
            if head.wanted and since <= second + part <= until:
                held = second + part, head.level, head.logger, text(said), head.session
                there = here
    if held is not None:
        yield new(LogEntry, (*held, tuple(more), source, there, kind))


def _head(key: bytes, span: LogWindow, heads: dict[bytes, _Head | None]) -> _Head | None:
    """Parse what is between a line's time and its message; None if it is not a head."""
    if len(key) > _LONGEST_HEAD:
        return None
    if len(heads) >= _MOST_HEADS:  # every session has its own heads
        heads.clear()
    found = None
    if match := _HEAD.fullmatch(key.decode("utf-8", "replace")):
        level, session, logger = match.groups()
        wanted = span.wanted is None or span.wanted(level, logger)
        found = _Head(level, session or "", logger, wanted)
    heads[key] = found
    return found


FORMAT = Format("log", local, parse)
