"""Reset the failed state of the gateway's systemd unit and start the gateway once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="reset-failed", codes=["GW-STARTLIMIT"], safety=Safety.SAFE)
def reset_failed(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start the gateway again after systemd gave up."""
    from hermes_doctor.api import GatewayStep, ResetFailed, gateway_service

    unit = finding.data["unit"]
    service = gateway_service(probes)
    if service.running() is not None:
        raise CannotFix(
            text(
                "A gateway runs already, but not as {unit}. Stop that process first.",
                unit=unit.name,
            )
        )
    yield ResetFailed(probes.home, unit.name, system=unit.manager is None)
    yield GatewayStep(
        service, restart=False, why="systemd no longer tries to start it", expected=True
    )
