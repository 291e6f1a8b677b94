"""Tell whether a local address belongs to the gateway of another home."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.probes.network import health
from hermes_doctor.processes import gateway_processes, listeners
from hermes_doctor.processes.home_of import is_same_folder


def is_port_of_other_home(url: str, home: Path) -> bool:
    """Tell whether a visible gateway of another home listens at this address."""
    place = health.parse(url) if url else None
    if place is None or not place.loopback:
        return False
    return any(
        one.claim is not None
        and not is_same_folder(one.claim.home, home)
        and health.reachable(one.gateway.pid)
        and any(door.local[1] == place.port for door in listeners.of(one.gateway.pid))
        for one in gateway_processes.candidates()
    )
