"""Restart a gateway that is stuck, disconnected, out of resources or outdated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, CouldNotLook, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_CODES = [
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


@fix(id="restart-gateway", codes=_CODES, safety=Safety.CONFIRM, unattended=True)
def restart_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restart the gateway after its current answers."""
    from hermes_doctor.api import GatewayStep, gateway_service, lacks_room

    if lacks_room(probes.space()):
        raise CannotFix(
            "The disk is full, so the gateway could not save anything. Free space first."
        )
    service = gateway_service(probes)
    pid = service.running()
    if pid is None:
        raise CannotFix("The gateway is not running, so it cannot be restarted. Start it instead.")
    named = finding.data.get("pid")
    if isinstance(named, int) and named != pid:
        raise CannotFix(
            text("Process {pid} is not the gateway. Stop that process yourself.", pid=named)
        )
    if finding.code == "SESSION-UNSAVED" and not _can_read_history(probes):
        raise CannotFix("First repair state.db: the gateway opens it only when it starts.")
    yield GatewayStep(service, restart=True, why=finding.title)


def _can_read_history(probes: Probes) -> bool:
    try:
        return probes.condition(probes.home / "state.db").readable
    except (CouldNotLook, FileNotFoundError):
        return False
