"""Who would start the gateway of this home again: systemd, launchd, s6, Docker, or nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

SYSTEMD_USER, SYSTEMD_SYSTEM = "systemd-user", "systemd-system"
LAUNCHD, S6, DOCKER, TASK = "launchd", "s6", "docker", "windows-task"
NOBODY = "nobody"


class Unit(NamedTuple):
    """One definition that runs a gateway of this home: a unit, a plist, a slot, a container."""

    kind: str
    """One of the constants above."""
    name: str
    """How its manager calls it: `hermes-gateway.service`, `ai.hermes.gateway`, `gateway-default`."""
    path: Path | None
    """The file that defines it."""
    home: Path | None
    """The home that it would run on."""
    pid: int | None
    """Its main process by the word of its manager."""
    state: str
    """`active`, `activating`, `inactive`, `failed`, or `unknown` when its manager cannot be asked."""
    settings: Mapping[str, str]
    """What its manager says of it: Restart, Result, NRestarts, ExecMainStatus and the like."""
    environment: Mapping[str, str]
    """The variables that it gives to the gateway. Holds secrets: never shown, only names are."""
    user: str | None
    """As whom it runs, where it says so."""


class Supervision(NamedTuple):
    """Who looks after the gateway of one home."""

    owner: Unit | None
    """What the running gateway belongs to, or what would run one; None: nobody."""
    units: tuple[Unit, ...]
    """Every definition for this home, the owner among them."""
    revives: bool | None
    """Whether the gateway would be started again when it ended by itself now; None: no telling."""
    why: str
    """One clause for people: "its unit has Restart=always"."""
    unsure: tuple[str, ...]
    """What could not be asked, and why."""
    linger: bool | None
    """Whether the user's services outlive the login; None where it does not matter."""
