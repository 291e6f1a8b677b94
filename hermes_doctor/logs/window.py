"""Find where a time window starts in a file, by a few small reads from its end."""

from __future__ import annotations

from collections.abc import Callable

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs.block_reader import OpenLog, next_line

SLACK = 60.0
"""Seconds by which lines may be out of order, because several processes write one file."""
_LOOK = 8 * 1024
_LONGEST_LOOK = 64 * 1024
_STEP = 64 * 1024
_LAST = 1024 * 1024

Moment = Callable[[bytes], float | None]
"""Parses when a line was written; None for a line without a time."""


class Start(NamedTuple):
    """The position from which to read."""

    offset: int
    """The start of a line, or the end of the file."""
    has_older_lines: bool
    """Whether there are older lines before it; if not, the window may start in an older file."""


def find(file: OpenLog, moment: Moment, since: float, floor: int = 0) -> Start:
    """Return where the lines since then start, but not before `floor`."""
    inside, before = file.size, -1
    step = _STEP
    while before < 0:
        position = max(floor, file.size - step)
        step *= 2
        if starts_before(file, position, moment, since):
            # The clock may have been wrong for a while: what is further back must agree.
            further = max(floor, file.size - step)
            if further == position or starts_before(file, further, moment, since) is not False:
                before = position
                break
        inside = position
        if position == floor:
            return Start(_aligned(file, floor), False)
    while inside - before > _STEP:
        middle = (inside + before) // 2
        if starts_before(file, middle, moment, since):
            before = middle
        else:
            inside = middle
    return Start(_aligned(file, before), True)


def last_time(file: OpenLog, moment: Moment) -> float | None:
    """Return the time of the last line that has one."""
    length = _LOOK
    while True:
        start = max(0, file.size - length)
        for line in reversed(file.read(start, length).split(b"\n")):
            if (at := moment(line.lstrip(b"\0"))) is not None:
                return at
        if start == 0 or length >= _LAST:
            return None
        length *= 8


def starts_before(file: OpenLog, position: int, moment: Moment, since: float) -> bool | None:
    """Tell whether the first dated line from here is before the window; None if none is near."""
    length = _LOOK
    while length <= _LONGEST_LOOK:
        data = file.read(position, length)
        if data and len(data) == data.count(0) and (past := file.past_hole(position)) > position:
            position = past - 1
            data = file.read(position, length)
        for line in data.split(b"\n")[1 if position else 0 :]:
            if (at := moment(line.lstrip(b"\0"))) is not None:
                return at < since - SLACK
        if len(data) < length:
            return None
        length *= 8
    return None


def _aligned(file: OpenLog, position: int) -> int:
    """Return the start of the first line from here."""
    if position == 0:
        return 0
    return min(next_line(file, position - 1, _LONGEST_LOOK), file.size)
