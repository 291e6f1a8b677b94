"""Start a gateway that is not running."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="start-gateway", codes=["GW-DOWN", "DOCKER-S6-DOWN"], safety=Safety.SAFE)
def start_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway through whatever owns it, and see that it stays."""
    from hermes_doctor.api import GatewayStep, gateway_service

    service = gateway_service(probes)
    if service.running() is not None:
        raise CannotFix("it runs by now")
    expected = finding.data.get("ran") is True and not service.was_stopped_on_purpose()
    why = "it is down" if expected else "it was not running, and you want it to"
    yield GatewayStep(service, restart=False, why=why, expected=expected)
