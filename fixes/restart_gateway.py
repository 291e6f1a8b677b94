"""Restart a gateway that works no more, or works with what is no longer there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.api import (
    CannotFix,
    Finding,
    GatewayStep,
    Probes,
    Safety,
    SaveLost,
    Step,
    fix,
    gateway_service,
)

_CODES = [
    "APPROVAL-DEADLOCK",
    "CRON-TICKER-DEAD",
    "DB-DELETED-WAL",
    "DB-DISKIO",
    "DB-LOCKED",
    "DB-REPLACED",
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


@fix(
    id="restart-gateway",
    codes=_CODES,
    safety=Safety.CONFIRM,
    then="save-deleted-log",
    unattended=True,
)
def restart_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let the gateway finish what it is at, stop it, and start it again."""
    service = gateway_service(probes)
    pid = service.running()
    if pid is None:
        raise CannotFix("it is not running any more")
    named = finding.data.get("pid")
    if isinstance(named, int) and named != pid:
        raise CannotFix(f"process {named} is not the gateway, and is not ours to end")
    yield from _kept(probes, pid)
    yield GatewayStep(service, restart=True, why=finding.title)


def _kept(probes: Probes, pid: int) -> Iterator[Step]:
    """Keep databases without a name: what the gateway writes into one until it stops is lost.

    A deleted log alone is saved by the engine, before it stops the gateway.
    """
    found: dict[Path, list[tuple[str, str]]] = {}
    for lost in probes.lost_files():
        others = [one for one in probes.held().holders(lost.database) if one != pid]
        others += [lost.pid] if lost.pid != pid else []
        if others:
            name = probes.home.name_of(lost.database)
            raise CannotFix(f"process {others[0]} has {name} open too: stop that one first")
        if lost.fate != "renamed":
            suffix = lost.path.name.removeprefix(lost.database.name)
            found.setdefault(lost.database, []).append((suffix, lost.fd))
    for path, fds in found.items():
        if any(not suffix for suffix, _ in fds):
            yield SaveLost(path, pid, tuple(sorted(fds)), why="nothing else holds what is in it")
