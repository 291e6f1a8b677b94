"""Decide whether a platform of a running gateway is really connected.

The state file keeps the states of all platforms across restarts, so only those count that this
process has written since it started. The gateway calls some platforms connected before their
server has accepted the login, so the lines of the platform's adapter count, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.message import shorten
from hermes_doctor.core.model import Gateway
from hermes_doctor.hermes.logs.secrets import redact_log_text
from hermes_doctor.hermes.processes.runtime_files import PlatformState, Runtime

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.probes.last_log_lines import GatewayLogLine
    from hermes_doctor.hermes.processes.runtime_files import PlatformState


_SLACK = timedelta(seconds=2)
"""The clocks of the kernel and of the file may differ by this much."""


def own_states(runtime: Runtime, gateway: Gateway) -> Mapping[str, PlatformState] | None:
    """Return this process's states by platform; None if another process wrote the file."""
    if runtime.state_owner is None or runtime.state_owner.pid != gateway.pid:
        return None
    since = gateway.started_at - _SLACK
    return {
        name: said
        for name, said in runtime.platforms.items()
        if said.updated_at is not None and said.updated_at >= since
    }


READY = {"qqbot": pattern(r"\[QQBot:[^\]]*\] (Ready, session_id=|Session resumed)")}
"""Platforms that log a line when their server has accepted the login."""
BROKEN = {
    "qqbot": pattern(r"\[QQBot:[^\]]*\] (WebSocket (closed|error)|Max reconnect|Bot is )"),
    "weixin": pattern(r"\[Weixin\] .{0,40}?(poll error|getUpdates failed|Session expired)"),
}
"""What their adapters log when the connection is lost, while the gateway calls them connected."""
RECONNECTING = timedelta(minutes=1)
"""A connection that was lost is usually back by then."""
_HEAD = pattern(r"\[[^\]]{1,60}\] ")
_LEVELS = ("WARNING", "ERROR", "CRITICAL")
_LONG = 120
"""Characters of a reason."""


class PlatformProof(NamedTuple):
    """Whether a platform is connected and, if not, why not."""

    connected: bool
    reason: str = ""
    since: datetime | None = None
    """When a connection that the gateway still reports was lost."""
    final: bool = False
    """Whether waiting cannot change it."""

    @property
    def is_reconnecting(self) -> bool:
        """Whether the connection was lost so recently that it is probably back soon."""
        if self.connected or self.since is None:
            return False
        return datetime.now(UTC) - self.since < RECONNECTING


def prove(
    name: str, claim: PlatformState | None, words: Sequence[GatewayLogLine], *, running: bool
) -> PlatformProof:
    """Judge a platform by what this gateway process reported and logged since it started.

    `running`: the gateway says that its start is complete.
    """
    own = [word for word in words if name in word.logger]
    if claim is None:
        return PlatformProof(False, "the gateway has not started it", final=running)
    if claim.state != "connected":
        ended = claim.state in ("fatal", "paused", "disabled")
        return PlatformProof(False, _reason(own, claim), final=ended)
    ready, broken = READY.get(name), BROKEN.get(name)
    lost: GatewayLogLine | None = None
    accepted = ready is None
    for word in words:
        if word.text.startswith(f"inbound message: platform={name} ") or (
            ready is not None and name in word.logger and ready.match(word.text)
        ):
            accepted, lost = True, None
        elif broken is not None and name in word.logger and broken.match(word.text):
            lost = lost or word
    if lost is not None:
        return PlatformProof(False, _reason(own, claim), lost.at)
    if not accepted:
        return PlatformProof(False, "its server has not accepted the login yet", claim.updated_at)
    return PlatformProof(True)


def _reason(own: Sequence[GatewayLogLine], claim: PlatformState) -> str:
    """The platform's own reason: the last warning of its adapter, else what the gateway reports."""
    for word in reversed(own):
        if word.level in _LEVELS:
            return _shown(_HEAD.sub("", word.text, count=1))
    return _shown(claim.error_message or "") or claim.state


def _shown(text: str) -> str:
    return shorten(redact_log_text(re.sub(r"\s+", " ", text[:2000])), _LONG).strip()
