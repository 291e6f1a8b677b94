"""Read the settings that the gateway of a home uses: its variables, .env and config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.known_secrets import add_environment
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.settings.variables import Settings, parse
from hermes_doctor.system.files import snapshot

if TYPE_CHECKING:
    from hermes_doctor.probes.gateway import GatewayProbes


def read(probes: GatewayProbes) -> Settings:
    """Return the settings of the running gateway, or of the one that would be started."""
    unsure = []
    try:
        before = start_environment(probes)
    except CouldNotLook as doubt:
        before = {}
        unsure.append(str(doubt))
    file: dict[str, str] = {}
    try:
        found = probes.env()
        file = parse(found.text or "") if found else {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    config: Mapping[str, Any] = {}
    try:
        written = probes.config()
        config = (written.values if written else None) or {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    return Settings({**before, **file}, frozenset(file), config, tuple(unsure))


def start_environment(probes: GatewayProbes) -> Mapping[str, str]:
    """Return the environment that the gateway was, or would be, started with."""
    gateways = probes.gateways()
    if gateways:
        environment = probes.vitals(gateways[0].pid).environment
        if environment is None:
            raise CouldNotLook(
                text("you may not see the environment of process {pid}", pid=gateways[0].pid)
            )
        add_environment(environment)
        return environment
    if not probes.network:  # asking supervisors takes time, and a quick check does not need this
        return {}
    owner = probes.supervision().owner
    if owner is None:
        return {}
    add_environment(owner.environment)
    return owner.environment


def is_managed(probes: GatewayProbes) -> bool:
    """Tell whether a package manager writes this home, according to Hermes' own marks."""
    if snapshot(probes.home / ".managed").kind != "absent":
        return True
    return bool(start_environment(probes).get("HERMES_MANAGED", "").strip())
