"""Find the API server of the running gateway: its address and its key."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook

if TYPE_CHECKING:
    from hermes_doctor.model import Gateway
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.settings.resolved import Resolved

YOUNG = 60.0
"""Seconds after its start in which a gateway may not listen yet."""
PATIENCE, STEP = 15.0, 0.2
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Door(NamedTuple):
    """The API server of a running gateway. `key` is a secret: never show it."""

    pid: int
    host: str
    port: int
    key: str

    def __repr__(self) -> str:
        return f"Door({self.place})"

    @property
    def place(self) -> str:
        """The address for display and for a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def find(probes: Probes, found: Resolved) -> Door | str:
    """Return the API server of the gateway, or why the gateway cannot be asked."""
    from hermes_doctor.settings import api_server

    gateway = _gateway(probes)
    if isinstance(gateway, str):
        return gateway
    server = api_server.find(found)
    if server is None:
        return "the API server of the gateway is off"
    if server.refused:
        return text("the API server did not start: its key is {fault}", fault=server.fault)
    key = api_server.secret_key(found.world)
    if not (key.isascii() and key.isprintable()):
        return "the key of the API server contains unusual characters"
    address = _listening(gateway, _port(found))
    if isinstance(address, str):
        return address
    return Door(gateway.pid, *address, str(key))


def _gateway(probes: Probes) -> Gateway | str:
    try:
        if probes.served_by():
            return "the gateway of the root home serves this profile"
        runtime, gateways = probes.runtime(), probes.gateways()
    except CouldNotLook as doubt:
        return text("could not look for the gateway: {reason}", reason=doubt)
    if not gateways:
        return runtime.unseen or "no gateway is running"
    return next((one for one in gateways if one.pid == runtime.lock_holder), gateways[0])


def _port(found: Resolved) -> int:
    from hermes_doctor.settings import api_server, ports

    known = ports.listening_ports(found.world)
    return next(one.port for one in known if one.platform == api_server.NAME)


def _listening(gateway: Gateway, port: int) -> tuple[str, int] | str:
    """Return the address on which this very process listens; wait for it after a start."""
    from hermes_doctor.probes.network import health
    from hermes_doctor.processes import listeners

    if not health.reachable(gateway.pid):
        return "the gateway has its own network, as in a container"
    age = (datetime.now(UTC) - gateway.running_since).total_seconds()
    end = time.monotonic() + (PATIENCE if age < YOUNG else 0.0)
    while True:
        for one in listeners.of(gateway.pid):
            if one.local[1] == port:
                return _ANYWHERE.get(one.local[0], one.local[0]), port
        if time.monotonic() >= end:
            return text("the gateway does not listen on port {port} of its API server", port=port)
        time.sleep(STEP)
