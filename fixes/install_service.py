"""Let systemd, or cron where systemd does not run, restart a gateway without a supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="install-service",
    codes=["GW-UNSUPERVISED", "GW-WSL-NO-SYSTEMD"],
    safety=Safety.CONFIRM,
)
def install_service(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Install what restarts the gateway: a service, or a crontab line."""
    from hermes_doctor.api import service_installation

    yield from service_installation(probes, agreed="GW-DOWN")
