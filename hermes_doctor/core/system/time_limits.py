"""Measure time limits in the seconds of an idle machine, so that a busy one gets more time.

Every limit of a probe guards against something that never answers: a dead network drive, a
service manager that hangs. Measured by the clock alone, such a limit would also end probes that
only wait for the processor. So while several processes share each processor, the time counts less
by the same factor.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable

MOST = 20.0
"""The highest factor."""
EXTRA = 60.0
"""The most additional seconds on a busy machine: so that a real hang also ends there."""
PATIENCE = 3.0
"""The highest factor for a whole command."""
SLICE = 0.1
"""Seconds of one wait, after which the factor is measured again."""
_FRESH = 0.05
"""Seconds for which a measured factor is used."""
_measured = (0.0, 1.0)


def factor() -> float:
    """Return how many times longer work takes now than on an idle machine, from 1 to MOST."""
    global _measured
    now = time.monotonic()
    at, known = _measured
    if not at or not 0 <= now - at <= _FRESH:
        known = min(MOST, max(1.0, _runnable() / _count(), _small_share()))
        _measured = (now, known)
    return known


def stretch(seconds: float) -> float:
    """Convert a short limit to seconds of the clock, by the current load."""
    return min(seconds * factor(), seconds + EXTRA)


@functools.cache
def patience() -> float:
    """Return how many times longer a whole command may take, from 1 to PATIENCE.

    That is decided once, by the load of the last minute and of this moment, so that all its
    processes agree.
    """
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):
        load = 0.0
    return min(PATIENCE, max(load / _count(), factor()))


class Stopwatch:
    """Counts the seconds that an idle machine would have taken; each thread needs its own."""

    __slots__ = ("_last", "_spent", "started_at")

    def __init__(self, started_at: float | None = None) -> None:
        self.started_at = self._last = time.monotonic() if started_at is None else started_at
        self._spent = 0.0

    def read(self) -> float:
        """Return the seconds so far; call it often, since the factor changes."""
        now = time.monotonic()
        self._spent += (now - self._last) / factor()
        self._last = now
        return max(self._spent, now - self.started_at - EXTRA)

    def wait(
        self, event: threading.Event, limit: float, useless: Callable[[], bool] | None = None
    ) -> bool:
        """Wait for the event until `limit` seconds are counted; return whether it came.

        It also ends when waiting has become useless.
        """
        left = limit - (time.monotonic() - self._last)  # most events come before the first `read`
        if left <= 0:
            left = limit - self.read()
        while left > 0:
            if event.wait(min(left, SLICE)):
                return True
            if useless and useless():
                break
            left = limit - self.read()
        return event.is_set()


def _runnable() -> float:
    """Return how many processes and threads run or wait for a processor at this moment."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return float(file.read(128).split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


@functools.cache
def _count() -> float:
    """Return the number of processors of the machine, which all runnable processes share."""
    return float(os.cpu_count() or 1)


@functools.cache
def _small_share() -> float:
    """Return the slowdown if a control group, such as a container's, limits us below one CPU."""
    try:
        with open("/proc/self/cgroup") as file:
            group = next(line[3:].strip() for line in file if line.startswith("0::"))
        with open(f"/sys/fs/cgroup{group.rstrip('/')}/cpu.max") as file:
            quota, period = map(float, file.read(64).split())
        return period / quota
    except (OSError, ValueError, StopIteration, ZeroDivisionError):
        return 1.0
