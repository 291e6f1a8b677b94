"""Give the gateway's container a setting that it lacks, in its Compose file and in Docker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="configure-container",
    codes=["DOCKER-NO-RESTART", "DOCKER-TZ", "DOCKER-LIMITS", "DOCKER-NO-HEALTHCHECK"],
    safety=Safety.CONFIRM,
)
def configure_container(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the missing setting to the Compose file of the container."""
    from hermes_doctor.api import change_container

    why = {
        "DOCKER-NO-RESTART": "so that Docker restarts it after a crash or a reboot",
        "DOCKER-TZ": "so that scheduled jobs run in the time zone of this machine",
        "DOCKER-LIMITS": "so that it stays within limits",
        "DOCKER-NO-HEALTHCHECK": "so that Docker shows whether the gateway answers",
    }[finding.code]
    yield from change_container(probes, finding.data["wanted"], why)
