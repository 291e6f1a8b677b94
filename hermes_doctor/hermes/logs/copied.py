"""Recognise log files whose mtime is that of a copy, and lines that a wrong clock dated.

`cp -r`, an unpacked archive or a restored volume gives every file a new mtime. Such an mtime says
nothing about the time zone of the lines, although it may be a whole number of hours after them.

A gateway writes its state, its starts and its exits also into files with times in UTC, at the same
moments as lines of its log. A shift between the log and the mtime of its file is a time zone only
if these times are shifted, too.
"""

from __future__ import annotations

import os
import re
import time
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, tzinfo
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import read_tail
from hermes_doctor.hermes.logs import clock, entry, rotated
from hermes_doctor.hermes.logs.block_reader import OpenLog
from hermes_doctor.hermes.logs.clock import LogClock

_LOGS = ("agent.log", "gateway.log", "errors.log")
_SETTINGS = ("config.yaml", ".env")
_EXACT = 3.0
"""Seconds between the time in a line and the mtime that writing it leaves."""
_APART = 10.0
"""Seconds between two last lines that count as different ones."""
_AHEAD = 300.0
_AT_ONCE, _SAME = 60.0, 5.0
"""Seconds within which a copy writes all logs, and the settings of a small home with them."""


class _End(NamedTuple):
    """The local time of a file's last line, and the file's mtime."""

    last: float
    written: float


def is_copied(home: Home) -> bool:
    """Tell whether the mtimes of the logs are unrelated to the lines in them."""
    ends = list(_ends(home / "logs"))
    if not ends or any(_is_ahead(end) for end in ends):
        return False
    return _is_unrelated(home, ends) or _is_known_to_be_local(home, ends)


def _is_unrelated(home: Home, ends: list[_End]) -> bool:
    """Tell whether the mtimes are not whole quarter-hours after the lines, or all the same."""
    away = [clock.distance(end.last, end.written) for end in ends]
    if max(end.last for end in ends) - min(end.last for end in ends) <= _APART:
        return abs(away[0]) > _EXACT or _of_one_moment(home, ends)
    if max(away) - min(away) > _EXACT:
        return True
    return _of_one_moment(home, ends) or _spread(ends)


def _is_known_to_be_local(home: Home, ends: list[_End]) -> bool:
    """Tell whether a shift that looks like a time zone contradicts times whose zone is known."""
    last = max(ends)
    if clock.LogClock(None).fits_near(last.last, last.written):
        return False
    behind = last.written - last.last - clock.distance(last.last, last.written)
    return are_local(home, behind) is True


def _is_ahead(end: _End) -> bool:
    """Tell whether a line is later than its file here, so that its zone must be another one."""
    return clock.LogClock(None).latest(end.last) > end.written + 2 * _AT_ONCE


def latest_time(home: Home, zone: tzinfo | None, copied: bool) -> float:
    """Return the time from which on no line can be right: after now, if the logs end before now.

    If they end in the future, their time zone is unknown, and every line counts.
    """
    latest = time.time() + _AHEAD
    end = next(_ends(home / "logs"), None)
    if end is None:
        return float("inf")
    written = None if copied else end.written
    at = clock.clock_of_file(end.last, written, zone, None).latest(end.last)
    return latest if at <= latest else float("inf")


def _spread(ends: list[_End]) -> bool:
    """Tell whether lines far apart are in files that were written at the same time."""
    lines = max(end.last for end in ends) - min(end.last for end in ends)
    files = max(end.written for end in ends) - min(end.written for end in ends)
    return lines > 2 * _AT_ONCE and files < _AT_ONCE


def _of_one_moment(home: Home, ends: list[_End]) -> bool:
    """Tell whether the settings have the same mtime as the logs, which are older inside."""
    moments = [end.written for end in ends]
    for name in _SETTINGS:
        try:
            moments.append((home / name).stat().st_mtime)
        except (OSError, ValueError):
            continue
    if len(moments) == len(ends) or max(moments) - min(moments) > _SAME:
        return False
    return not any(clock.LogClock(None).fits_near(end.last, end.written) for end in ends)


def _ends(folder: Path) -> Iterator[_End]:
    for name in _LOGS:
        try:
            file = OpenLog(folder / name, f"logs/{name}")
        except (OSError, CouldNotLook):
            continue
        try:
            last = rotated.last_time(file, entry.local_time)
            if last is not None:
                yield _End(last, file.written)
        finally:
            file.close()


_STATE = "gateway_state.json"
_ZONED = (_STATE, "logs/gateway-exit-diag.log")
_EPOCHS = "gateway-starts.log"
_TAIL = 256 * 1024
_MOST = 200
_TIME = pattern(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-]\d\d:\d\d|Z)")
_EPOCH = pattern(rb"^\d{9,11}(?:\.\d+)?$", re.MULTILINE)
_SAME_MOMENT = 3.0
"""Seconds between a line and the time that is written elsewhere at the same moment."""
_LATE = 120.0
"""Seconds after which the mtime of the state file is that of a copy."""


def are_local(home: Home, behind: float) -> bool | None:
    """Tell whether lines are in this machine's zone, rather than `behind` seconds from UTC.

    None if nothing is known about it.
    """
    shown = sorted(_shown(home))
    moments = sorted(set(_moments(home)))[-_MOST:]
    here = LogClock(None)
    local = _fitting([here.latest(one) for one in shown], moments)
    shifted = _fitting([one + behind for one in shown], moments)
    if local != shifted:
        return local > shifted
    return True if _state_is_copied(home) else None


def _fitting(lines: list[float], moments: list[float]) -> int:
    """Count the moments at which a line was written."""
    found = 0
    for at in moments:
        place = bisect_left(lines, at - _SAME_MOMENT)
        found += place < len(lines) and lines[place] <= at + _SAME_MOMENT
    return found


def _shown(home: Home) -> Iterator[float]:
    for line in _tail(home, "logs/gateway.log").split(b"\n"):
        if (at := entry.local_time(line)) is not None:
            yield at


def _moments(home: Home) -> Iterator[float]:
    for name in _ZONED:
        yield from _times(_tail(home, name))
    for one in _EPOCH.findall(_tail(home, _EPOCHS)):
        yield float(one)


def _times(data: bytes) -> Iterator[float]:
    for one in _TIME.findall(data):
        try:
            yield datetime.fromisoformat(one.decode()).timestamp()
        except (ValueError, OverflowError):
            continue


def _state_is_copied(home: Home) -> bool:
    """Tell whether the state file is much newer than the last time in it."""
    last = max(_times(_tail(home, _STATE)), default=None)
    try:
        return last is not None and os.stat(home / _STATE).st_mtime - last > _LATE
    except (OSError, ValueError):
        return False


def _tail(home: Home, name: str) -> bytes:
    try:
        return read_tail(home / name, _TAIL)[0]
    except (OSError, CouldNotLook):
        return b""
