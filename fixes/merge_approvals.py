"""Move an approved user to the pairing folder that the gateway reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="merge-approvals", codes=["PAIRING-ASTRAY"], safety=Safety.CONFIRM, personal=True)
def merge_approvals(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Move the approved user to where the gateway looks."""
    from hermes_doctor.api import move_pairing

    yield from move_pairing(probes, finding.data["platform"], finding.data["user"])
