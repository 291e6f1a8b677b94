"""Read the files that a gateway writes about itself: pid, lock, state, starts, exits.

Any of them may be stale, half-written, foreign or hostile. A value without the form that Hermes
writes counts as missing; a file that cannot be read is also named in `doubts`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.files import MEGABYTE, read, read_tail, snapshot
from hermes_doctor.hermes.processes import process_stat

MARKERS = (
    ".clean_shutdown",
    ".drain_request.json",
    ".gateway-planned-stop.json",
    ".gateway-takeover.json",
    ".restart_pending.json",
)
_LAST_PID, _LAST_TICK = 2**31, 2**63
MOST_STARTS = 40
_HEX = frozenset("0123456789abcdef")
_LOW_KIB, _LOW_SHARE = 64 * 1024, 0.05
"""Below which of these Hermes takes the free memory for too little."""


class Owner(NamedTuple):
    """A process id with its start time, as a gateway writes it into its files."""

    pid: int
    start_time: int | None
    """When it began, in the kernel's ticks; needed because pids are used again."""


class PlatformState(NamedTuple):
    """The last state of one platform that the gateway wrote."""

    name: str
    state: str
    error_code: str | None
    updated_at: datetime | None
    error_message: str | None = None
    """The words of the error, which may contain a secret."""
    retrying_since: datetime | None = None
    """Since when the gateway tries to connect it; written after two hours (0.20.1 and later)."""


class Heartbeat(NamedTuple):
    """The last heartbeat of a gateway's event loop."""

    pid: int
    at: datetime
    monotonic: float | None = None
    """The same moment on the monotonic clock, which stops while the machine sleeps."""


class GatewayLife(NamedTuple):
    """One life of a gateway from its exit log: when it began, when and how it ended."""

    pid: int
    began: datetime
    ended: datetime | None
    how: str
    """`clean`, `failed`, `restart`, `alive`, or `gone` for one that wrote no exit record."""
    exit_code: int | None = None
    error: str | None = None
    """The class of the error that ended it, if there was one."""


class Ledger(NamedTuple):
    """The last life of the gateway as state/gateway.lifecycle.json has it."""

    phase: str
    """running or exited; a running one whose process is gone died without a word."""
    pid: int
    at: datetime | None
    """When it started, or when it exited."""
    exit_code: int | None = None
    reason: str | None = None
    """graceful_shutdown, shutdown_watchdog, loop_liveness_watchdog, startup_liveness_watchdog."""
    low_memory: bool = False
    """The machine had almost no free memory at the last heartbeat of this process."""
    after_death: bool = False
    """The life before this one ended without any exit record, as this one found at its start."""
    after_low_memory: bool = False
    """The machine had almost no free memory when the life before this one ended."""


class Runtime(NamedTuple):
    """The content of all files that a gateway writes about itself, as far as it can be read."""

    pid_file: Owner | None
    lock_file: Owner | None
    lock_holder: int | None
    """The pid that holds gateway.lock according to the kernel; 0 for one that we cannot see."""
    state: str | None
    """starting, running, degraded, draining, stopped or startup_failed; it may be outdated."""
    state_owner: Owner | None
    exit_reason: str | None
    restart_requested: bool
    desired_state: str | None
    updated_at: datetime | None
    platforms: Mapping[str, PlatformState]
    beat: Heartbeat | None
    clean_shutdown: bool
    """Whether the marker of an orderly shutdown exists."""
    starts: tuple[datetime, ...]
    """The latest starts, oldest first."""
    markers: frozenset[str] = frozenset()
    """The marker files in the home by which Hermes announces its next step."""
    doubts: tuple[str, ...] = ()
    """The files that exist but could not be read, and why."""
    unseen: str = ""
    """Why a gateway may run although none is visible; `lock_holder` is 0 then."""
    active_agents: int | None = None
    """The number of working agents that it wrote; before 0.18 only at its start and end."""
    served: frozenset[str] = frozenset()
    """The profiles that the gateway of a root home also serves, as it wrote."""
    store: str | None = None
    """Whether it can use its message history (0.20.6 and later): ok, unavailable or retrying."""
    ledger: Ledger | None = None
    """How the last life of the gateway ended (0.19.1 and later)."""
    commit: str | None = None
    """The commit of the code that it has loaded (0.20.5 and later)."""

    @property
    def ever(self) -> bool:
        """Whether a gateway has ever run on this home, as far as its files show."""
        return bool(self.pid_file or self.lock_file or self.state_owner or self.beat or self.starts)


def find(home: Home) -> Runtime:
    """Read all files that a gateway wrote about itself."""
    doubts: list[str] = []
    state = _mapping(_json(home / "gateway_state.json", doubts))
    lock = home / "gateway.lock"
    holders = open_files.lock_holders([lock]).get(lock, [])
    heartbeat = _json(home / "state" / "gateway.heartbeat", doubts)
    markers = frozenset(name for name in MARKERS if snapshot(home / name).kind != "absent")
    value = state.get("served_profiles")
    every = value[:1000] if isinstance(value, list) else []
    said = _mapping(heartbeat)
    pid, at = _whole(said.get("pid"), _LAST_PID), parse_time(said.get("updated_at"))
    clock = said.get("monotonic")
    if not isinstance(clock, float | int) or isinstance(clock, bool) or not 0 < clock < 1e12:
        clock = None
    return Runtime(
        pid_file=_owner(_json(home / "gateway.pid", doubts)),
        lock_file=_owner(_json(lock, doubts)),
        lock_holder=holders[0] if holders else None,
        state=parse_word(state.get("gateway_state")),
        state_owner=_owner(state) if state else None,
        exit_reason=_text(state.get("exit_reason")),
        restart_requested=state.get("restart_requested") is True,
        desired_state=parse_word(state.get("desired_state")),
        updated_at=parse_time(state.get("updated_at")),
        platforms=_platforms(state.get("platforms")),
        beat=Heartbeat(pid, at, clock) if pid and at else None,
        clean_shutdown=".clean_shutdown" in markers,
        starts=_starts(home / "gateway-starts.log", doubts),
        markers=markers,
        doubts=tuple(doubts),
        active_agents=_count(state.get("active_agents")),
        served=frozenset(one for one in every if isinstance(one, str)),
        store=parse_word(_mapping(state.get("session_store")).get("status")),
        ledger=_ledger(_json(home / "state" / "gateway.lifecycle.json", doubts), heartbeat),
        commit=parse_commit(state.get("code_sha")),
    )


def with_our_pids(runtime: Runtime, running: Iterable[int]) -> Runtime:
    """Replace the pids by those that the running gateways have in our namespace.

    A gateway in a container writes the pid that it has inside the container.
    """
    ours = {number: pid for pid in running if (number := process_stat.pid_in_namespace(pid)) != pid}
    if not ours:
        return runtime

    def owner(one: Owner | None) -> Owner | None:
        pid = ours.get(one.pid) if one else None
        seen = process_stat.stat(pid) if pid else None
        if one is None or pid is None or seen is None:
            return one
        return one._replace(pid=pid) if one.start_time in (None, seen.start_time) else one

    beat = runtime.beat
    return runtime._replace(
        pid_file=owner(runtime.pid_file),
        lock_file=owner(runtime.lock_file),
        state_owner=owner(runtime.state_owner),
        beat=beat._replace(pid=ours.get(beat.pid, beat.pid)) if beat else None,
    )


def _read(path: Path, doubts: list[str]) -> bytes:
    try:
        return read(path, MEGABYTE)[0]
    except FileNotFoundError:
        return b""
    except CouldNotLook as doubt:
        doubts.append(str(doubt))
        return b""


def _json(path: Path, doubts: list[str]) -> Any:
    """Parse a JSON file; None if it is missing, invalid or empty, as a new lock file is."""
    data = _read(path, doubts)
    if not data.strip():
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        doubts.append(f"{path.name}: is not JSON")
        return None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: object, end: int) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 < value < end
    return value if good and isinstance(value, int) else None


def _count(value: object) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool)
    return max(0, value) if good and isinstance(value, int) else None


def _owner(value: object) -> Owner | None:
    if not isinstance(value, dict):  # the oldest form is the bare number
        value = {"pid": value}
    pid = _whole(value.get("pid"), _LAST_PID)
    return Owner(pid, _whole(value.get("start_time"), _LAST_TICK)) if pid else None


def parse_word(value: object) -> str | None:
    """Return a value if it is a single word, as Hermes writes for a state; else None."""
    plain = isinstance(value, str) and 0 < len(value) <= 32 and value.isascii()
    return value if plain and isinstance(value, str) and value.isidentifier() else None


def parse_commit(value: object) -> str | None:
    """Return a value if it is a commit of git, whole or shortened; else None."""
    plain = isinstance(value, str) and 7 <= len(value) <= 64 and set(value) <= _HEX
    return value if plain and isinstance(value, str) else None


def is_same_commit(one: str, other: str) -> bool:
    """Tell whether two names of commits, whole or shortened, can be the same."""
    return one.startswith(other) or other.startswith(one)


def _text(value: object) -> str | None:
    return value[:2000] if isinstance(value, str) and value else None


def parse_time(value: object) -> datetime | None:
    """Parse a time as Hermes writes it and convert it to UTC; None for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def parse_epoch(value: object) -> datetime | None:
    """Convert seconds since 1970 to a time; None for anything else."""
    try:
        return datetime.fromtimestamp(float(str(value)[:40]), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _platforms(value: object) -> dict[str, PlatformState]:
    found = {}
    for name, said in list(_mapping(value).items())[:100]:
        state = parse_word(_mapping(said).get("state"))
        if parse_word(name) and state:
            found[name] = PlatformState(
                name,
                state,
                _text(said.get("error_code")),
                parse_time(said.get("updated_at")),
                _text(said.get("error_message")),
                parse_time(said.get("retrying_since")),
            )
    return found


def _ledger(value: object, heartbeat: object) -> Ledger | None:
    said, beat = _mapping(value), _mapping(heartbeat)
    phase, pid = parse_word(said.get("phase")), _whole(said.get("pid"), _LAST_PID)
    if phase not in ("running", "exited") or pid is None:
        return None
    at = parse_time(said.get("started_at" if phase == "running" else "exited_at"))
    memory = _mapping(beat.get("mem")) if beat.get("pid") == pid else {}
    free, total = (_count(memory.get(name)) for name in ("mem_available_kib", "mem_total_kib"))
    low = free is not None and (free < _LOW_KIB or bool(total and free / total < _LOW_SHARE))
    reason = parse_word(said.get("exit_reason"))
    before = [said.get(f"prior_{name}") is True for name in ("unclean_exit", "suspected_oom")]
    return Ledger(phase, pid, at, _count(said.get("exit_code")), reason, low, *before)


def _starts(path: Path, doubts: list[str]) -> tuple[datetime, ...]:
    lines = _read(path, doubts)[-4096:].decode("ascii", "replace").split()
    return tuple(sorted(epoch for line in lines[-MOST_STARTS:] if (epoch := parse_epoch(line))))


NAME = "logs/gateway-exit-diag.log"
"""A JSON line for every start and every orderly exit; a start without an exit was killed."""
WATCHDOG = "logs/gateway-shutdown-watchdog.log"
TAIL, MOST = 256 * 1024, 200  # Hermes never rotates it, so only the latest lives are read
UNCLEAN = "gateway.previous_unclean_exit"
"""Written by a gateway that starts, about the one before it."""
RESTART = 75
"""The exit code by which a gateway asks its supervisor to restart it."""


def read_lives(home: Home, running: Mapping[int, int] = MappingProxyType({})) -> list[GatewayLife]:
    """Return the latest lives of gateways of this home, oldest first.

    `running` maps the pid that each running gateway has in its own namespace to the pid that it has
    here, because a container's log has the container's pids.
    """
    lives: list[GatewayLife] = []
    latest: dict[int, int] = {}
    for record in _records(home / NAME):
        pid, at = record.get("pid"), parse_time(record.get("ts"))
        tag = record.get("tag")
        if not isinstance(pid, int) or at is None or not isinstance(tag, str):
            continue
        if tag == "gateway.start":
            latest[pid] = len(lives)
            lives.append(GatewayLife(pid, at, None, "gone"))
        elif pid in latest and tag != UNCLEAN:
            lives[latest[pid]] = _ended(lives[latest[pid]], at, tag, record)
    for n, life in enumerate(lives):
        if latest[life.pid] == n and life.how == "gone" and life.pid in running:
            lives[n] = life._replace(how="alive", pid=running[life.pid])
    return lives[-MOST:]


def _ended(life: GatewayLife, at: datetime, tag: str, said: dict[str, Any]) -> GatewayLife:
    """Add a record of its exit to a life; a general record does not override a specific one."""
    known = life.how != "gone"
    if tag in ("gateway.exit_clean", "asyncio.run.KeyboardInterrupt"):
        return life._replace(ended=at, how="clean", exit_code=0)
    if tag in ("gateway.exit_nonzero", "asyncio.run.exception"):
        name = parse_word(said.get("exc_type"))
        error = name if name and name.endswith(("Error", "Exception", "Interrupt")) else None
        return life._replace(ended=at, how="failed", exit_code=1, error=error)
    if tag == "asyncio.run.SystemExit":
        code = said.get("code")
        number = code if isinstance(code, int) and not isinstance(code, bool) else int(bool(code))
        how = {0: "clean", RESTART: "restart"}.get(number, "failed")
        return life._replace(ended=at, how=how, exit_code=number)
    if tag == "asyncio.run.returned" and not known:
        good = said.get("success") is True
        return life._replace(ended=at, how="clean" if good else "failed", exit_code=int(not good))
    return life if known else life._replace(ended=at, how="failed")


def killed_by_watchdog(home: Home) -> dict[int, datetime]:
    """Return when each gateway, by pid, was killed by its own watchdog as its shutdown hung."""
    found = {}
    for record in _records(home / WATCHDOG):
        pid, at = record.get("pid"), parse_time(record.get("fired_at"))
        if record.get("event") == "shutdown_watchdog_fired" and isinstance(pid, int) and at:
            found[pid] = at
    return found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        data, _ = read_tail(path, TAIL)
    except FileNotFoundError:
        return
    for line in data.split(b"\n"):
        if line.startswith(b"{"):
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(said, dict):
                yield said
