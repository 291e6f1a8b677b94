"""Tell whether a gateway's event loop is running: from heartbeat, API server and kernel."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits, mounts
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.core.system.mounts import Space
from hermes_doctor.diagnosis.probes import port_test
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.process_stat import ProcessDetails
from hermes_doctor.hermes.processes.runtime_files import Heartbeat, Runtime
from hermes_doctor.hermes.processes.sockets import Connection

if TYPE_CHECKING:
    from hermes_doctor.core.system.mounts import FileUser

FRESH, OLD = 90.0, 120.0
SKEW = 5.0
"""Seconds. The heartbeat is written every 30 s; a busy machine or an installation delays one."""
LONG, SHORT = 4.0, 1.0
"""Seconds to wait for an answer: LONG for a busy loop, SHORT if the heartbeat is old."""
DEFAULT_PORT = "8642"
_IN_ENV = pattern(r"""^\s*(?:export\s+)?API_SERVER_PORT\s*=\s*["']?(\d{1,5})""", re.MULTILINE)
WATCH, STEP = 2.0, 0.1
"""Seconds to watch where a main thread waits, and between two looks."""
_NOTHING = "it has no heartbeat, and no API server that hermes-doctor could ask"
NEARLY = 4
"""With so few file descriptors left, the gateway can neither accept a connection nor write."""


class Pulse(NamedTuple):
    """What is known about an event loop."""

    pid: int | None
    """None for a gateway on another machine, of which only the address is known."""
    running: bool | None
    """Whether the event loop is running; None if unknown."""
    what: str
    """A clause for the user: "its last heartbeat is 12 s old"."""
    since: datetime | None = None
    """When it was last seen running, if it is not."""
    certain: bool = False
    """Not running, and not just for a moment: the heartbeat is old or the process halted."""
    halted: bool = False
    """The process is stopped, or its cgroup is paused."""
    age: float | None = None
    """Seconds since the last heartbeat of this process."""
    answer: str = port_test.NOT_ASKED
    """The answer of its port or of /health: one of the words in `health`."""
    waiting: int | None = None
    """How many connections were waiting to be accepted when we connected."""

    @property
    def mute(self) -> bool:
        """Accepts no connection and has no heartbeat: only waiting can show whether it is stuck."""
        return self.running is False and self.age is None and self.answer == port_test.SILENT


def examine_process(
    process: ProcessDetails,
    runtime: Runtime,
    listens: Iterable[Connection],
    ports: Iterable[int],
    space: Space | None,
    closed: Callable[[], str] = str,
) -> Pulse:
    """Examine one process, given its listening sockets and possible ports of its API server.

    `closed` returns why it cannot write its heartbeat, and is called when the heartbeat is old.
    """
    since = _seen(process, runtime)
    if process.halted:
        what = "its cgroup is paused" if process.frozen else "it was stopped by a signal (SIGSTOP)"
        return Pulse(process.pid, False, what, since, certain=True, halted=True)
    age = beat_age(runtime.beat, process)
    hindered = closed() if age is not None and age > FRESH else ""
    serves = runtime.platforms.get("api_server")
    door = _door(listens, set(ports), serves is not None and serves.state == "connected")
    asked = port_test.HealthResult(port_test.NOT_ASKED)
    if door is not None and port_test.reachable(process.pid) and not _spent(process):
        patience = SHORT if age is not None and age > OLD else LONG
        asked = port_test.test_port(process.pid, door, limits.stretch(patience))
    pulse = Pulse(
        pid=process.pid,
        running=None,
        what="",
        since=since,
        age=None if hindered else age,
        answer=asked.result,
        waiting=door.unread if door else None,
    )
    judged = _judge(pulse, asked, process, runtime, space)
    if hindered and not judged.running:
        judged = judged._replace(what=text("{what}; {doubt}", what=judged.what, doubt=hindered))
    return judged


def _judge(
    pulse: Pulse,
    asked: port_test.HealthResult,
    process: ProcessDetails,
    runtime: Runtime,
    space: Space | None,
) -> Pulse:
    age, silent = pulse.age, asked.result == port_test.SILENT
    if asked.result == port_test.ANSWERED:
        message = text(
            "its API server answered within {time} ms", time=max(1, round(asked.seconds * 1000))
        )
        return pulse._replace(running=True, what=message)
    quiet = text("its API server did not answer for {seconds:.0f} s", seconds=asked.seconds)
    excuse = _excuse(process, space)
    if excuse and (silent or age is None or age > FRESH):
        return pulse._replace(
            what=text("{excuse}, so a missing heartbeat or answer proves nothing", excuse=excuse)
        )
    if age is not None and age > OLD:
        old = text("its last heartbeat is {time} old", time=_span(age))
        rests = _rests(pulse.pid or 0)
        if rests and not silent:
            return pulse._replace(
                running=True,
                what=text(
                    "its main thread waits for events, but its last heartbeat is {time} old",
                    time=_span(age),
                ),
            )
        if silent:
            old = text(
                "its last heartbeat is {time} old, and its API server did not answer for "
                "{seconds:.0f} s",
                time=_span(age),
                seconds=asked.seconds,
            )
        return pulse._replace(running=False, certain=not rests, what=old)
    if silent and age is not None:
        return pulse._replace(
            running=False,
            what=text(
                "its API server did not answer for {seconds:.0f} s, {time} after its "
                "last heartbeat",
                seconds=asked.seconds,
                time=_span(age),
            ),
        )
    if silent:  # one check cannot tell long work from a stuck loop
        return pulse._replace(running=False, what=quiet)
    if age is not None:
        return pulse._replace(
            running=True, what=text("its last heartbeat is {time} old", time=_span(age))
        )
    if runtime.state == "starting":
        return pulse._replace(what="it is still starting")
    return _by_rest(pulse)


def _rests(pid: int) -> bool:
    """Tell whether its main thread waits for events, which a stuck event loop never does."""
    return any(process_stat.is_event_wait(place) for place in _places(pid))


def _places(pid: int) -> Iterator[str]:
    """Look repeatedly where the main thread waits, for WATCH seconds of an idle machine.

    On a busy machine a loop comes to rest more rarely, so it is watched for longer.
    """
    watch = limits.Stopwatch()
    while True:
        yield process_stat.waits_in(pid)
        if watch.read() >= WATCH:
            return
        time.sleep(STEP)


def _by_rest(pulse: Pulse) -> Pulse:
    """Judge by where the main thread waits: a running loop regularly waits for events."""
    if not pulse.pid:
        return pulse._replace(what=_NOTHING)
    places = set()
    started = time.monotonic()
    for place in _places(pulse.pid):
        if process_stat.is_event_wait(place):
            return pulse._replace(running=True, what="its main thread waits for events")
        places.add(place)
    if len(places) == 1 and (place := places.pop()):
        return pulse._replace(
            running=False,
            what=text(
                "it waited in one place ({place}) for {seconds:.0f} s",
                place=place,
                seconds=time.monotonic() - started,
            ),
        )
    return pulse._replace(what=_NOTHING)


def examine_url(url: str, *, network: bool) -> Pulse:
    """Examine a gateway in another container, at the address in GATEWAY_HEALTH_URL."""
    place = port_test.parse(url)
    if place is None:
        return Pulse(None, None, "GATEWAY_HEALTH_URL is not a valid address")
    if not network and not place.loopback:
        return Pulse(None, None, "GATEWAY_HEALTH_URL is on another machine: add --network")
    asked = port_test.get_health(place, limits.stretch(LONG))
    down = (port_test.SILENT, port_test.REFUSED, port_test.BROKEN)
    turns = True if asked.result == port_test.ANSWERED else False if asked.result in down else None
    what = text("GATEWAY_HEALTH_URL: {result}", result=asked.result)
    return Pulse(None, turns, what, answer=asked.result)


def beat_age(heartbeat: Heartbeat | None, process: ProcessDetails) -> float | None:
    """Return the age of this process's last heartbeat, without the time the machine slept.

    A heartbeat in the future was written before the clock was set back; then only the monotonic
    clock can tell its age.
    """
    if (
        heartbeat is None
        or heartbeat.pid != process.pid
        or heartbeat.at < process.started_at - timedelta(seconds=5)
    ):
        return None
    by_wall = (datetime.now(UTC) - heartbeat.at).total_seconds()
    by_clock = -1.0 if heartbeat.monotonic is None else time.monotonic() - heartbeat.monotonic
    known = [max(0.0, by_wall)] if by_wall > -SKEW else []
    known += [by_clock] if by_clock >= 0 else []
    return min(known, default=None)


def _seen(process: ProcessDetails, runtime: Runtime) -> datetime | None:
    """Return when the process last recorded any activity."""
    mine = runtime.state_owner is not None and runtime.state_owner.pid == process.pid
    times = [runtime.updated_at] if mine else []
    now = datetime.now(UTC)
    age = beat_age(runtime.beat, process)
    if age is not None and runtime.beat:
        times.append(min(runtime.beat.at, now - timedelta(seconds=age)))
    return max((at for at in times if at and at <= now), default=None)


def _door(listens: Iterable[Connection], ports: set[int], serves: bool) -> Connection | None:
    """Return the API server's socket: at a configured port, else the only one there is."""
    every = list(listens)
    known = [connection for connection in every if connection.local[1] in ports]
    if known:
        return known[0]
    return every[0] if serves and len({one.local[1] for one in every}) == 1 else None


def ports(environment: Mapping[str, str] | None, env: str, config: Mapping[Any, Any]) -> set[int]:
    """Return the ports that the API server may use: the configured ones and the default."""
    found = {DEFAULT_PORT, (environment or {}).get("API_SERVER_PORT")}
    found |= set(_IN_ENV.findall(env))
    platforms = config.get("platforms")
    server = platforms.get("api_server") if isinstance(platforms, dict) else None
    if isinstance(server, dict):
        extra = server.get("extra")
        found |= {str(server.get("port"))[:6]}
        found |= {str(extra.get("port"))[:6]} if isinstance(extra, dict) else set()
    return {int(one) for one in found if one is not None and str(one).isdigit()}


def heartbeat_obstacle(user: FileUser, folder: Path) -> str:
    """Return why this user cannot write a heartbeat to a folder; empty if nothing prevents it.

    Hermes writes a new file and renames it over the old one, so the folder's permissions decide.
    """
    try:
        taken = snapshot(folder.resolve())
        if taken.kind != "directory":
            return ""
        if mounts.free_space(folder).read_only:
            return f"it cannot write its heartbeat, since {folder.name}/ is read-only"
    except (CouldNotLook, OSError, RuntimeError):
        return ""
    if user.may_write(taken):
        return ""
    return f"it cannot write its heartbeat, since {folder.name}/ belongs to uid {taken.uid}"


def _excuse(process: ProcessDetails, disk_space: Space | None) -> str:
    """Return why a running loop could neither write its heartbeat nor answer; else empty."""
    if _spent(process):
        return "it has no descriptor left"
    if disk_space is not None and mounts.is_full(disk_space):
        return "the disk is full"
    return ""


def _spent(process: ProcessDetails) -> bool:
    used, limit = process.files, process.files_limit
    return used is not None and bool(limit) and (limit or 0) - used <= NEARLY


def _span(seconds: float) -> str:
    if seconds < OLD:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"
