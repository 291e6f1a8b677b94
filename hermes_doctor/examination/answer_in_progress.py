"""Detect whether the gateway is writing an answer, which a repair must not interrupt."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes_doctor.examination.liveness import PATIENCE
from hermes_doctor.model import CouldNotLook, Gateway
from hermes_doctor.probes.probes import Probes
from hermes_doctor.processes.runtime_files import Runtime

COUNTED_SINCE = (0, 18)
"""Since this release a gateway records at each turn how many agents are active."""


def is_answering(probes: Probes) -> bool:
    """Whether the gateway of this home is writing an answer; False if that is unknown."""
    try:
        gateways, runtime = probes.gateways(), probes.runtime()
    except CouldNotLook:
        return False
    return any(_busy(probes, gateway, runtime) for gateway in gateways)


def _busy(probes: Probes, gateway: Gateway, runtime: Runtime) -> bool:
    own = runtime.state_owner is not None and runtime.state_owner.pid == gateway.pid
    if own and runtime.active_agents:
        return True
    try:
        found = probes.installation()
        if own and found and found.release >= COUNTED_SINCE and runtime.active_agents is not None:
            return False
        waits = probes.traffic().waits_since
    except CouldNotLook:
        return False
    if waits is None or waits < gateway.started_at:
        return False
    return datetime.now(UTC) - waits < PATIENCE
