"""Programs that the gateway starts: whether it finds them where it looks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.effective_settings import started_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_doctor.probes.gateway import GatewayProbes


class Program(NamedTuple):
    """What came of the search for a program."""

    where: str | None
    sure: bool
    """Whether it was looked for where the gateway looks; else it was our own PATH."""


def find(probes: GatewayProbes, name: str) -> Program:
    """A program on the PATH of the gateway, or in what Hermes keeps for itself in the home."""
    environment = _environment(probes)
    path = environment.get("PATH")
    gateways = probes.gateways()
    root = Path(f"/proc/{gateways[0].pid}/root") if gateways else Path("/")
    folders = [*(path or os.environ.get("PATH", os.defpath)).split(os.pathsep)]
    folders += [str(probes.home / "node" / "bin"), str(probes.home / "node")]
    for folder in folders:
        if os.path.isabs(folder):
            place = os.path.join(folder, name)
            if any(map(_runs, (root / place.lstrip("/"), Path(place)))):
                return Program(place, path is not None)
    return Program(None, path is not None)


def _environment(probes: GatewayProbes) -> Mapping[str, str]:
    """What the gateway is, or would be, started with."""
    try:
        found = started_with(probes)
        if not found and not probes.gateways():
            owner = probes.supervision().owner
            found = owner.environment if owner else {}
    except CouldNotLook:
        return {}
    return found


def _runs(place: Path) -> bool:
    return os.path.isfile(place) and os.access(place, os.X_OK)
