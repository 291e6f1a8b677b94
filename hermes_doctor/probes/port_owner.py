"""Whose door an address of this machine is."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.probes.network import health
from hermes_doctor.processes import gateway_processes, listeners
from hermes_doctor.processes.home_of import is_same


def is_of_another(url: str, home: Path) -> bool:
    """Whether a gateway of another home, that we can see, listens at this address."""
    place = health.parse(url) if url else None
    if place is None or not place.loopback:
        return False
    return any(
        one.claim is not None
        and not is_same(one.claim.home, home)
        and health.reachable(one.gateway.pid)
        and any(door.local[1] == place.port for door in listeners.of(one.gateway.pid))
        for one in gateway_processes.candidates()
    )
