"""Reset a gateway that keeps failing: stop it, repair its databases, start and verify it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_RUNGS = ["header", "indexes", "full text", "rows"]


@fix(id="reset-gateway", codes=["GW-CRASH-LOOP", "GW-UNIT-FAILED"], safety=Safety.CONFIRM)
def reset_gateway(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Stop the gateway, repair its databases and start it."""
    from hermes_doctor.api import GatewayStep, ResetFailed, database_repair, gateway_service

    service = gateway_service(probes)
    for _, path, found in probes.conditions():
        if found.fault or found.truncated or found.damage:
            yield database_repair(probes, path, _RUNGS, why="repair the damaged database")
    unit = finding.data.get("unit")
    if unit is not None and unit.systemd and unit.state == "failed":
        yield ResetFailed(probes.home, unit.name, system=unit.manager is None)
    why = "it does not start by itself"
    yield GatewayStep(service, restart=True, why=why, expected=True)
