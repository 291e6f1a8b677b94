"""Whether a person started the gateway that runs now, and not its supervisor after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.hermes.supervisors.unit import DOCKER

if TYPE_CHECKING:
    from hermes_doctor.core.model import Gateway
    from hermes_doctor.hermes.processes.runtime_files import GatewayLife
    from hermes_doctor.hermes.supervisors.unit import Unit

FIRST = 30.0
"""Seconds within which the gateway is started by the main process of its unit or container."""
STEADY, RECENT = 60.0, 3600.0
"""Seconds that a gateway without a supervisor must run; and how old a life may be that it must
outlast."""


def is_own(
    gateway: Gateway, owner: Unit | None, lives: Callable[[], Sequence[GatewayLife]]
) -> bool:
    """Whether a person started the gateway: its supervisor did not restart it after a crash.

    Without a supervisor, a shell loop may have started it: it must run clearly longer than those
    before it, whose `lives` are then needed.
    """
    return _is_first(gateway, owner) if owner else _outlasts(gateway, lives())


def _is_first(gateway: Gateway, owner: Unit) -> bool:
    """Whether the unit or container has not been restarted since it was started."""
    from hermes_doctor.hermes.processes.process_stat import start_moment, stat

    counts = owner.systemd or owner.kind == DOCKER
    if not counts or "NRestarts" not in owner.settings or owner.number("NRestarts"):
        return False
    main = stat(owner.pid) if owner.pid else None
    if main is None:
        return False
    return (gateway.started_at - start_moment(main.start_time)).total_seconds() <= FIRST


def _outlasts(gateway: Gateway, lives: Sequence[GatewayLife]) -> bool:
    """Whether a gateway has run for more than a minute, and twice as long as each before it."""
    now = datetime.now(UTC)
    recent = [
        2 * (life.ended - life.began).total_seconds()
        for life in lives
        if life.ended and (now - life.began).total_seconds() < RECENT
    ]
    return (now - gateway.started_at).total_seconds() > max([STEADY, *recent])
