"""The format that Hermes has written since 0.13: one head, and lines without one that follow it.

    2026-11-15 00:35:12,118 INFO [20261115_001248_df794ef7] gateway.run: what it says

This is the hot path: a window may hold a million lines. What most lines share is looked up, not
taken apart again: the second, and all between the time and the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hermes_doctor.logs.clock import Clock, seconds
from hermes_doctor.logs.entry import Entry
from hermes_doctor.logs.formats import LEVELS, LONG, MORE_BYTES, MORE_LINES, Format, Span, text
from hermes_doctor.logs.opened import Lines

_HEAD = re.compile(rf" ({'|'.join(LEVELS)})(?: \[([^\]\s]+)\])? ([A-Za-z_][\w.\-]*)", re.ASCII)
_MILLISECONDS = {b"%03d" % n: n / 1000 for n in range(1000)}
_MOST_HEADS = 20_000
_LONGEST_HEAD = 300


class _Head(NamedTuple):
    level: str
    session: str
    logger: str
    wanted: bool


def local(line: bytes) -> float | None:
    """The time at the beginning of a line."""
    if line[19:20] != b"," or line[23:24] != b" ":
        return None
    whole, part = seconds(line[:19]), _MILLISECONDS.get(line[20:23])
    return None if whole is None or part is None else whole + part


def parse(lines: Lines, clock: Clock, span: Span, source: str, kind: str) -> Iterator[Entry]:
    """The entries that are asked for; what follows one that is not goes with it."""
    since, until, _ = span
    heads: dict[bytes, _Head | None] = {}
    make = Entry._make
    stamp, second = b"", 0.0
    held: tuple[float, str, str, str, str] | None = None
    """An entry that may go on."""
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
                if line[:19] != stamp:
                    shown = seconds(line[:19])
                    stamp = b"" if shown is None else line[:19]
                    second = 0.0 if shown is None else clock.utc(shown)
                part = _MILLISECONDS.get(line[20:23])
                end = line.find(b": ", 24, _LONGEST_HEAD)
                if stamp and part is not None and end > 0:
                    key = line[23:end]
                    try:
                        head = heads[key]
                    except KeyError:
                        head = _head(key, span, heads)
            if head is None:
                if held is not None and room > 0 and len(more) < MORE_LINES:
                    more.append(text(line[:room]))
                    room -= len(line)
                continue
            if held is not None:
                yield make((*held, tuple(more), source, there, kind))
                held = None
            if more:
                more, room = [], MORE_BYTES
            at = second + (part or 0.0)
            if head.wanted and since <= at <= until:
                said = line[end + 2 : end + LONG].decode("utf-8", "replace").rstrip("\r")
                held = at, head.level, head.logger, said, head.session
                there = here
    if held is not None:
        yield make((*held, tuple(more), source, there, kind))


def _head(key: bytes, span: Span, heads: dict[bytes, _Head | None]) -> _Head | None:
    """What stands between a line's time and its message; None when it is no head at all."""
    if len(heads) >= _MOST_HEADS:  # every session has heads of its own
        heads.clear()
    found = None
    if match := _HEAD.fullmatch(key.decode("utf-8", "replace")):
        level, session, logger = match.groups()
        wanted = span.wanted is None or span.wanted(level, logger)
        found = _Head(level, session or "", logger, wanted)
    heads[key] = found
    return found


FORMAT = Format("log", local, parse)
