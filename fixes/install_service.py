"""Give a gateway that nobody looks after a service."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Finding, Probes, Safety, Step, fix, service_installation


@fix(id="install-service", codes=["GW-UNSUPERVISED"], safety=Safety.CONFIRM)
def install_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Let Hermes' own installer make a user service, and move the gateway under it."""
    yield from service_installation(probes)
