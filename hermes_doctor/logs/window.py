"""Where in a file a window of time begins, found from the file's end in a few small looks."""

from __future__ import annotations

from collections.abc import Callable

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs.block_reader import Opened, next_line

SLACK = 60.0
"""Seconds by which lines may stand out of order: several processes write one file."""
_LOOK = 8 * 1024
_LONGEST_LOOK = 64 * 1024
_STEP = 64 * 1024
_LAST = 1024 * 1024

Moment = Callable[[bytes], float | None]
"""When a line was written; None for a line that does not say."""


class Start(NamedTuple):
    """Where to begin."""

    at: int
    """Where a line begins, or the file's end."""
    reached: bool
    """Whether there are lines in front of it from before the window; else it may go further."""


def find(file: Opened, moment: Moment, since: float, floor: int = 0) -> Start:
    """Where the lines since then begin, not looking further back than `floor`."""
    inside, before = file.size, -1
    step = _STEP
    while before < 0:
        position = max(floor, file.size - step)
        step *= 2
        if early(file, position, moment, since):
            # A clock may have been wrong for a while: what lies further back must agree.
            further = max(floor, file.size - step)
            if further == position or early(file, further, moment, since) is not False:
                before = position
                break
        inside = position
        if position == floor:
            return Start(_aligned(file, floor), False)
    while inside - before > _STEP:
        middle = (inside + before) // 2
        if early(file, middle, moment, since):
            before = middle
        else:
            inside = middle
    return Start(_aligned(file, before), True)


def last(file: Opened, moment: Moment) -> float | None:
    """What the last line says that says a time."""
    length = _LOOK
    while True:
        start = max(0, file.size - length)
        for line in reversed(file.read(start, length).split(b"\n")):
            if (at := moment(line.lstrip(b"\0"))) is not None:
                return at
        if start == 0 or length >= _LAST:
            return None
        length *= 8


def early(file: Opened, position: int, moment: Moment, since: float) -> bool | None:
    """Whether the first dated line from here is of before the window; None: there is none near."""
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


def _aligned(file: Opened, position: int) -> int:
    """The beginning of the first line from here."""
    if position == 0:
        return 0
    return min(next_line(file, position - 1, _LONGEST_LOOK), file.size)
