"""Find programs that the gateway runs on the gateway's own PATH."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import known_or

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_doctor.diagnosis.probes.gateway_view import GatewayView


class Program(NamedTuple):
    """Where a program was found."""

    path: str | None
    sure: bool
    """Whether the gateway's PATH was searched; otherwise it was our own."""


def find(gateway: GatewayView, name: str) -> Program:
    """Find a program on the gateway's PATH or among Hermes' own programs in the home."""
    environment = known_or({}, lambda: _environment(gateway))
    path = environment.get("PATH")
    gateways = gateway.running()
    root = Path(f"/proc/{gateways[0].pid}/root") if gateways else Path("/")
    folders = [*(path or os.environ.get("PATH", os.defpath)).split(os.pathsep)]
    folders += [str(gateway.home / "node" / "bin"), str(gateway.home / "node")]
    for folder in folders:
        if os.path.isabs(folder):
            place = os.path.join(folder, name)
            if any(map(_runs, (root / place.lstrip("/"), Path(place)))):
                return Program(place, path is not None)
    return Program(None, path is not None)


def _environment(gateway: GatewayView) -> Mapping[str, str]:
    """Return the environment that the gateway was, or would be, started with."""
    found = gateway.start_environment()
    if found or gateway.running():
        return found
    owner = gateway.supervision().owner
    return owner.environment if owner else {}


def _runs(place: Path) -> bool:
    return os.path.isfile(place) and os.access(place, os.X_OK)
