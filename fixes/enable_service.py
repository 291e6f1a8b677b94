"""Enable the gateway's systemd unit, so that it starts with the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="enable-service", codes=["GW-NOT-ENABLED"], safety=Safety.CONFIRM)
def enable_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let systemd start the gateway with the machine."""
    from hermes_doctor.api import EnableUnit

    unit = finding.data["unit"]
    if unit.name not in [one.name for one in probes.supervision().units if one.can_be_enabled]:
        raise CannotFix(text("{unit} is enabled already. Nothing to do.", unit=unit.name))
    yield EnableUnit(probes.home, unit.name, system=unit.manager is None)
