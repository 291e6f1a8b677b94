"""Start a gateway that is not running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="start-gateway", codes=["GW-DOWN", "DOCKER-S6-DOWN"], safety=Safety.SAFE)
def start_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway and check that it keeps running."""
    from hermes_doctor.api import GatewayStep, gateway_service, lacks_room

    if lacks_room(probes.space()):
        raise CannotFix(
            "The disk is full, so the gateway could not save anything. Free space first."
        )
    service = gateway_service(probes)
    if service.running() is not None:
        raise CannotFix("The gateway is running already. Nothing to do.")
    ours = finding.data.get("ours") is True  # this tool stopped it, and nobody else
    expected = finding.data.get("ran") is True and (ours or not service.was_stopped_on_purpose())
    why = "it should be running" if expected else "it is not running"
    yield GatewayStep(service, restart=False, why=why, expected=expected)
