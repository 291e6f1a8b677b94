"""Reads the clocks of the machine and detects sleep and clock changes between two rounds.

Intervals use the monotonic clock, which cannot be set. Times that are stored for the next process
use a clock that also runs while the machine sleeps, together with the id of the boot.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.operations.history.place import boot_id
from hermes_doctor.repair.schedule.jobs import format_duration

SLACK = 10.0
"""Seconds that clocks may drift apart between two rounds without meaning a gap."""
DRIFT = 0.001
"""Additional drift as a share of the elapsed time: time synchronisation slows and speeds clocks."""


class ClockReading(NamedTuple):
    """All clocks at one moment, in seconds."""

    monotonic: float
    """The monotonic clock; it stops while the machine sleeps."""
    boottime: float | None
    """A monotonic clock that runs during sleep; None if the system has none."""
    wall: float
    """The wall clock; it can be set."""


class MachineClock:
    """The clocks of this machine."""

    def __init__(self) -> None:
        self.boot = boot_id()
        """The boot id; empty if the system has none."""

    def read(self) -> ClockReading:
        which = getattr(time, "CLOCK_BOOTTIME", None)
        awake = time.clock_gettime(which) if which is not None else None
        return ClockReading(time.monotonic(), awake, time.time())

    def boot_clock(self) -> float:
        """Seconds on a clock that all processes of this boot share, also across sleep."""
        now = self.read()
        return now.wall if now.boottime is None else now.boottime

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.read().wall, UTC)


def gap(before: ClockReading, after: ClockReading, longest: float) -> str | None:
    """Return why rounds must be counted from zero; None if they need not."""
    steady, wall = after.monotonic - before.monotonic, after.wall - before.wall
    known = before.boottime is not None and after.boottime is not None
    real = (after.boottime or 0) - (before.boottime or 0) if known else steady
    slack = SLACK + DRIFT * abs(steady)
    if real - steady > slack:
        return f"the machine slept for {format_duration(real - steady)}"
    if not known and wall - steady > slack:
        return f"the machine slept for {format_duration(wall - steady)}, or its clock was set"
    if abs(wall - real) > slack:
        way = "forward" if wall > real else "back"
        return f"the clock was set {way} by {format_duration(abs(wall - real))}"
    if steady > longest:
        return f"no check was made for {format_duration(steady)}"
    return None
