"""Approve a user who is waiting to be paired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="approve-pairing", codes=["PAIRING-WAITING"], safety=Safety.CONFIRM, personal=True)
def approve_waiting(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Approve the user who waits to be paired."""
    from hermes_doctor.api import approve_pairing, mirror_user

    platform, user = finding.data["platform"], finding.data["user"]
    yield from approve_pairing(probes, platform, user, finding.data["entry"])
    yield from mirror_user(probes, platform, user)
