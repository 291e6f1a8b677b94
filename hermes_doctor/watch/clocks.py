"""Time as a watch needs it: how long it waited, and whether the machine slept meanwhile.

Intervals go by a clock that nobody can set. What outlives a process goes by one that also runs
while the machine sleeps, together with the boot that it counts from.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.schedule.durations import span

SLACK = 10.0
"""Seconds that clocks may drift apart between two rounds without anything having happened."""
DRIFT = 0.001
"""The same as a part of the time between them: clocks are slowed down and sped up to agree."""


class Reading(NamedTuple):
    """All clocks at one moment, in seconds."""

    steady: float
    """Stands still while the machine sleeps."""
    awake: float | None
    """Runs on while it sleeps; None where there is no such clock."""
    wall: float
    """What people go by; anybody may set it."""


class Clock:
    """The clocks of this machine."""

    def __init__(self) -> None:
        self.boot = _boot()
        """Which start of the machine this is; empty where it does not say."""

    def read(self) -> Reading:
        """All of them now."""
        which = getattr(time, "CLOCK_BOOTTIME", None)
        awake = time.clock_gettime(which) if which is not None else None
        return Reading(time.monotonic(), awake, time.time())

    def lasting(self) -> float:
        """Seconds on a clock that other processes of this boot read as well."""
        now = self.read()
        return now.wall if now.awake is None else now.awake

    def now(self) -> datetime:
        """The time of day, for people."""
        return datetime.fromtimestamp(self.read().wall, UTC)


def gap(before: Reading, after: Reading, longest: float) -> str | None:
    """Why what was seen before says little about now; None when nothing came between."""
    steady, wall = after.steady - before.steady, after.wall - before.wall
    known = before.awake is not None and after.awake is not None
    real = (after.awake or 0) - (before.awake or 0) if known else steady
    slack = SLACK + DRIFT * abs(steady)
    if real - steady > slack:
        return f"the machine slept for {span(real - steady)}"
    if not known and wall - steady > slack:
        return f"the machine slept for {span(wall - steady)}, or its clock was set"
    if abs(wall - real) > slack:
        way = "forward" if wall > real else "back"
        return f"the clock was set {way} by {span(abs(wall - real))}"
    if steady > longest:
        return f"nothing was looked at for {span(steady)}"
    return None


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read(64).strip()
    except OSError:
        return ""
