"""Decide whether log lines are in the time zone of this machine, by times whose zone is known.

A gateway writes its state, its starts and its exits also into files with times in UTC, at the same
moments as lines of its log. A shift between the log and the mtime of its file is a time zone only
if these times are shifted, too.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime

from hermes_doctor.home import Home
from hermes_doctor.lazy import pattern
from hermes_doctor.logs import hermes
from hermes_doctor.logs.clock import LogClock
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import read_tail

_STATE = "gateway_state.json"
_ZONED = (_STATE, "logs/gateway-exit-diag.log")
_EPOCHS = "gateway-starts.log"
_TAIL = 256 * 1024
_MOST = 200
_TIME = pattern(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[+-]\d\d:\d\d|Z)")
_EPOCH = pattern(rb"^\d{9,11}(?:\.\d+)?$", re.MULTILINE)
_NEAR = 3.0
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
        place = bisect_left(lines, at - _NEAR)
        found += place < len(lines) and lines[place] <= at + _NEAR
    return found


def _shown(home: Home) -> Iterator[float]:
    for line in _tail(home, "logs/gateway.log").split(b"\n"):
        if (at := hermes.local(line)) is not None:
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
