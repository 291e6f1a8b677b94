"""Install a systemd user service for a gateway that has no supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="install-service", codes=["GW-UNSUPERVISED"], safety=Safety.CONFIRM)
def install_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Install a service that restarts the gateway."""
    from hermes_doctor.api import service_installation

    yield from service_installation(probes)
