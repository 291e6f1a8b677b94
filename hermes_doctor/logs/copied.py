"""Recognise log files whose mtime is that of a copy, and lines that a wrong clock dated.

`cp -r`, an unpacked archive or a restored volume gives every file a new mtime. Such an mtime says
nothing about the time zone of the lines, although it may be a whole number of hours after them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.logs import clock, hermes, window
from hermes_doctor.logs.block_reader import OpenLog
from hermes_doctor.model import CouldNotLook

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
    from hermes_doctor.logs import recorded_moments

    behind = last.written - last.last - clock.distance(last.last, last.written)
    return recorded_moments.are_local(home, behind) is True


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
    at = clock.of_file(end.last, written, zone, None).latest(end.last)
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
            last = window.last_time(file, hermes.local)
            if last is not None:
                yield _End(last, file.written)
        finally:
            file.close()
