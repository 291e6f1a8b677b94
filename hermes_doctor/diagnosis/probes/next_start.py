"""Find out what starts the gateway next if none works now, and how long that takes.

A gateway that fails again and again is not working between two starts, although a supervisor, a
loop in a shell or Hermes itself is about to try again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import duration, text
from hermes_doctor.core.model import CouldNotLook, known_or
from hermes_doctor.hermes.processes.home_of import holds_lock_in
from hermes_doctor.hermes.supervisors.units import DOCKER, parse_time_span

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView
    from hermes_doctor.diagnosis.probes.hermes_view import SettingsView
    from hermes_doctor.diagnosis.probes.machine_view import MachineView
    from hermes_doctor.hermes.processes.runtime_files import GatewayLife
    from hermes_doctor.hermes.supervisors.units import Unit

RECENT = timedelta(minutes=10)
MANY = 3
"""So many recent lives that failed are a crash loop."""
_SHORT = timedelta(minutes=6)
"""The longest life in a loop: Hermes itself may wait for 5 minutes before it tries to start."""
_STARTS, _WINDOW = 5, 120.0
"""Hermes delays its start after more starts than that within so many seconds (0.19 and later)."""
_FAILED_START = 60.0
"""A gateway that fails within so many seconds, besides the delay by Hermes, has never worked."""
_SLACK = 5.0
"""Seconds by which a loop may be late, since a busy machine starts programs slowly."""
_DOCKER_MOST = 60.0


class NextStart(NamedTuple):
    """The next start of a gateway that does not work now."""

    what: str
    """A clause for the user: "systemd restarts it in 4 s"."""
    seconds: float | None = None
    """How long until then, if that is known."""
    pid: int | None = None
    """The process that waits, if there is one: it has started, but does not work yet."""


def find(machine: MachineView, gateway: GatewayView, settings: SettingsView) -> NextStart | None:
    """Return the next start; None if a gateway works, or if nothing starts one."""
    gateways = gateway.running()
    waiting = [one for one in gateways if holds_lock_in(one.pid, gateway.home.path) is False]
    if len(waiting) < len(gateways):
        return None
    if waiting and datetime.now(UTC) - waiting[-1].running_since > RECENT:
        return None  # no start takes that long: it runs, but lost its lock
    if waiting:
        pid, starts = waiting[-1].pid, gateway.runtime().starts
        return _waits(pid, waiting[-1].started_at, starts, lambda: _limits(machine, settings, pid))
    try:
        owner = gateway.supervision().owner
        if owner is not None:
            return _of_supervisor(owner)
        runtime, lives = gateway.runtime(), gateway.diary()
    except CouldNotLook:
        return None
    failed = runtime.state == "startup_failed" or runtime.exit_reason is not None
    if lives and (failed or lives[-1].how in ("failed", "gone")):
        return _of_loop(lives)
    return None


def fails_repeatedly(lives: Sequence[GatewayLife]) -> bool:
    """Whether these lives of a gateway are a crash loop, even if it works for a moment."""
    now = datetime.now(UTC)
    failed = (life.how in ("failed", "gone") and now - life.began < RECENT for life in lives)
    return sum(failed) >= MANY


def last_worked(lives: Sequence[GatewayLife], starts: Sequence[datetime]) -> datetime | None:
    """Return when the gateway last worked, which is before the failed starts at the end.

    If its last end is not known, it is when the first of these starts began.
    """
    since = None
    for life in sorted(lives, key=lambda one: one.ended or one.began, reverse=True):
        if life.how != "failed" or life.ended is None:
            return life.ended or since
        known = [start for start in starts if start <= life.began + timedelta(seconds=1)]
        waited = hermes_delay(known, _STARTS, _WINDOW) if known else 0.0
        if (life.ended - life.began).total_seconds() > _FAILED_START + waited:
            return life.ended
        since = life.began
    return since


def not_enabled(gateway: GatewayView) -> str:
    """Say that the unit of a stopped gateway is not enabled; empty if it is, or without a unit."""
    owner = known_or(None, lambda: gateway.supervision().owner)
    if owner is None or not owner.systemd or owner.starts_at_boot is not False:
        return ""
    return text("{unit} is not enabled", unit=owner.name)


def _waits(
    pid: int,
    began: datetime,
    starts: Sequence[datetime],
    limits_of_hermes: Callable[[], tuple[int, float]],
) -> NextStart:
    delay = 0.0
    if starts and starts[-1] >= began - timedelta(seconds=1):
        delay = hermes_delay(starts, *limits_of_hermes())
    left = delay - (datetime.now(UTC) - starts[-1]).total_seconds() if delay else 0.0
    if left <= 0:
        return NextStart(text("process {pid} is still starting", pid=pid), None, pid)
    what = text(
        "Hermes waits {delay} before its next try ({left} left)",
        delay=_span(delay),
        left=_span(left),
    )
    return NextStart(what, left, pid)


def hermes_delay(starts: Sequence[datetime], most: int, window: float) -> float:
    """Return the seconds that Hermes waits after the last of these starts."""
    recent = sum((starts[-1] - start).total_seconds() <= window for start in starts)
    if most <= 0 or recent <= most:
        return 0.0
    return min(300.0, 5.0 * float(2 ** min(recent - most, 6)))


def _limits(machine: MachineView, settings: SettingsView, pid: int) -> tuple[int, float]:
    """Return after how many starts, within how many seconds, this process waits."""
    config = settings.config()
    values: Mapping[Any, Any] = (config and config.values) or {}
    for name in ("gateway", "respawn_storm"):
        inner = values.get(name)
        values = inner if isinstance(inner, dict) else {}
    return limits(values, machine.vitals(pid).environment or {})


def limits(values: Mapping[Any, Any], variables: Mapping[str, str]) -> tuple[int, float]:
    """Return after how many starts, within how many seconds, Hermes waits with these settings."""
    most, window = values.get("max_starts"), values.get("window_seconds")
    with contextlib.suppress(KeyError, ValueError):
        most = int(variables["HERMES_GATEWAY_MAX_STARTS"])
    with contextlib.suppress(KeyError, ValueError):
        window = float(variables["HERMES_GATEWAY_START_WINDOW_S"])
    return (
        most if isinstance(most, int) else _STARTS,
        window if isinstance(window, int | float) else _WINDOW,
    )


def _of_supervisor(unit: Unit) -> NextStart | None:
    in_loop = unit.systemd and unit.state == "active" and unit.number("NRestarts") > 0
    if not unit.is_between_starts and not in_loop:
        return None
    if unit.kind == DOCKER:
        # Docker waits 0.1 s after the first failure, and twice as long after each further one.
        most = min(_DOCKER_MOST, 0.1 * 2 ** min(unit.number("NRestarts"), 10))
        return NextStart(text("Docker restarts it within {time}", time=_span(most)))
    pause = parse_time_span(unit.settings.get("RestartUSec", "")) if unit.systemd else None
    since = unit.number("StateChangeTimestampMonotonic") / 1e6
    if pause is None or not since or unit.settings.get("SubState") != "auto-restart":
        return NextStart(text("{manager} is starting it", manager=unit.manager_name))
    left = max(0.0, since + pause - time.monotonic())
    what = text("{manager} restarts it in {time}", manager=unit.manager_name, time=_span(left))
    return NextStart(what, left)


def _of_loop(lives: Sequence[GatewayLife]) -> NextStart | None:
    """Return the next start by something unknown that started it again and again until now."""
    now = datetime.now(UTC)
    recent = [live for live in lives if now - live.began < RECENT]
    if len(recent) < MANY or recent[-1].ended is None:
        return None
    last = recent[-MANY:]
    if any(life.how == "clean" or (life.ended or now) - life.began > _SHORT for life in last):
        return None
    pauses = [
        (later.began - one.ended).total_seconds()
        for one, later in pairwise(recent)
        if one.ended is not None
    ]
    pause = max(pauses[1 - MANY :], default=0.0)
    since = (now - recent[-1].ended).total_seconds()
    if len(pauses) < MANY - 1 or not 0 <= since <= pause + _SLACK:
        return None
    left = max(0.0, pause - since)
    what = text("something starts it again in {time}", time=_span(left))
    return NextStart(what, left)


def _span(seconds: float) -> str:
    """Return a short time in seconds, since every second counts for who waits."""
    return f"{max(1.0, seconds):.0f} s" if seconds < 120 else duration(seconds)
