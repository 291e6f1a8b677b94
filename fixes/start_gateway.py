"""Bring up a gateway that is down."""

from collections.abc import Iterator

from hermes_doctor.api import (
    CannotFix,
    Finding,
    GatewayStep,
    Probes,
    Safety,
    Step,
    fix,
    gateway_service,
)


@fix(id="start-gateway", codes=["GW-DOWN", "DOCKER-S6-DOWN"], safety=Safety.SAFE)
def start_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway through whatever owns it, and see that it stays."""
    service = gateway_service(probes)
    if service.running() is not None:
        raise CannotFix("it runs by now")
    expected = finding.data.get("ran") is True and not service.laid_down()
    why = "it is down" if expected else "it was not running, and you want it to"
    yield GatewayStep(service, restart=False, why=why, expected=expected)
