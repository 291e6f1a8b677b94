"""Start, restart or reset the gateway."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CannotFix,
    CouldNotLook,
    Finding,
    GatewayStep,
    MoveAside,
    Probes,
    ResetFailed,
    Safety,
    Step,
    fix,
    snapshot,
)
from hermes_doctor.api.repairs import database_repair, gateway_control
from hermes_doctor.api.stores import lacks_room


def _refuse_full_disk(probes: Probes) -> None:
    """A gateway must not start on a full disk."""
    if lacks_room(probes.machine.space()):
        raise CannotFix(
            "The disk is full, so the gateway could not save anything. Free space first."
        )


@fix(id="start-gateway", codes=["GW-DOWN", "DOCKER-S6-DOWN"], safety=Safety.SAFE)
def start_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway and check that it keeps running."""
    _refuse_full_disk(probes)
    service = gateway_control(probes)
    if service.running() is not None:
        raise CannotFix("The gateway is running already. Nothing to do.")
    ours = finding.data.get("ours") is True  # this tool stopped it, and nobody else
    expected = finding.data.get("ran") is True and (ours or not service.was_stopped_on_purpose())
    why = "it should be running" if expected else "it is not running"
    yield GatewayStep(service, restart=False, why=why, expected=expected)


_ENDED_BY_RESTART = [
    "APPROVAL-DEADLOCK",
    "APPROVAL-TIMEOUT",
    "CRON-TICKER-DEAD",
    "DB-DISKIO",
    "DB-LOCKED",
    "DC-ZOMBIE",
    "DING-STREAM",
    "FEISHU-WS-DEAD",
    "GW-CODE-SKEW",
    "GW-DRAIN-HANG",
    "GW-DUPLICATE",
    "GW-FD-EXHAUST",
    "GW-LOCK-LOST",
    "GW-LOOP-BLOCKED",
    "GW-MEMORY",
    "GW-STALE-SETTINGS",
    "GW-SUSPENDED",
    "GW-TASK-DEAD",
    "GW-UPDATE-NOT-RESTARTED",
    "MATRIX-TOKEN",
    "NET-CLOSE-WAIT",
    "NET-SLEEP-WAKE",
    "PLATFORM-DEAF",
    "PLATFORM-DOWN",
    "PLATFORM-PAUSED",
    "PLATFORM-STOPPED",
    "QQ-4009",
    "QQ-FATAL-CLOSE",
    "QQ-GIVEUP",
    "QQ-SESSION",
    "QQ-STALE-RESUME",
    "REPLY-NONE",
    "SESSION-UNSAVED",
    "SIGNAL-SSE-STALE",
    "SLACK-ZOMBIE",
    "TG-CONNECT-HANG",
    "TG-POLL-STALL",
    "TG-POOL-EXHAUST",
    "WA-BRIDGE",
    "WECOM-846609",
    "WECOM-WS-DEAD",
    "WX-POLL-ERROR",
    "WX-ZOMBIE-POLL",
    "YUANBAO-CLOSE",
]


@fix(id="restart-gateway", codes=_ENDED_BY_RESTART, safety=Safety.CONFIRM, unattended=True)
def restart_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restart the gateway after its current answers."""
    _refuse_full_disk(probes)
    service = gateway_control(probes)
    pid = service.running()
    if pid is None:
        raise CannotFix("The gateway is not running, so it cannot be restarted. Start it instead.")
    named = finding.data.get("pid")
    if isinstance(named, int) and named != pid:
        raise CannotFix("Process {pid} is not the gateway. Stop that process yourself.", pid=named)
    if finding.code == "SESSION-UNSAVED" and not _can_read_history(probes):
        raise CannotFix("First repair state.db: the gateway opens it only when it starts.")
    yield GatewayStep(service, restart=True, why=finding.title)


def _can_read_history(probes: Probes) -> bool:
    try:
        return probes.databases.condition(probes.home / "state.db").readable
    except (CouldNotLook, FileNotFoundError):
        return False


_METHODS = ["header", "indexes", "full text", "rows"]


@fix(id="reset-gateway", codes=["GW-CRASH-LOOP", "GW-UNIT-FAILED"], safety=Safety.CONFIRM)
def reset_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Stop the gateway, repair its databases and start it."""
    service = gateway_control(probes)
    for _, path, condition in probes.databases.conditions():
        if condition.fault or condition.truncated or condition.damage:
            yield database_repair(probes, path, _METHODS, why="repair the damaged database")
    unit = finding.data.get("unit")
    if unit is not None and unit.systemd and unit.state == "failed":
        yield ResetFailed(probes.home, unit.name, system=unit.manager is None)
    why = "it does not start by itself"
    yield GatewayStep(service, restart=True, why=why, expected=True)


@fix(id="reset-failed", codes=["GW-STARTLIMIT"], safety=Safety.SAFE)
def reset_failed(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway again after systemd gave up."""
    unit = finding.data["unit"]
    service = gateway_control(probes)
    if service.running() is not None:
        raise CannotFix(
            "A gateway runs already, but not as {unit}. Stop that process first.", unit=unit.name
        )
    yield ResetFailed(probes.home, unit.name, system=unit.manager is None)
    yield GatewayStep(
        service, restart=False, why="systemd no longer tries to start it", expected=True
    )


_FILES_OF_GATEWAY = ("gateway.pid", "gateway.lock")


@fix(id="clear-stale-lock", codes=["GW-STALE-PID"], safety=Safety.SAFE)
def clear_stale_lock(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove gateway.pid and gateway.lock of a stopped gateway."""
    if probes.gateway.running():
        raise CannotFix("A gateway runs now and uses these files. Nothing to do.")
    runtime = probes.gateway.runtime()
    if runtime.unseen:
        raise CannotFix(runtime.unseen)
    if runtime.lock_holder is not None:
        raise CannotFix(
            "Process {pid} holds gateway.lock. Stop that process first.", pid=runtime.lock_holder
        )
    for name in _FILES_OF_GATEWAY:
        kind = snapshot(probes.home / name).kind
        if kind not in ("absent", "file", "symlink"):
            raise CannotFix(
                "{name} is a {kind}, not a file. Remove it yourself.", name=name, kind=kind
            )
        if kind != "absent":
            yield MoveAside(probes.home / name, why="no gateway uses it")
