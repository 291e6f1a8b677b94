"""Add a user whom the gateway rejected to the allowlist of the platform."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="add-allowed-user", codes=["AUTHZ-UNAUTHORIZED"], safety=Safety.CONFIRM, personal=True)
def add_allowed_user(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add the refused user to the allowlist."""
    from hermes_doctor.api import admit_user

    user = finding.data.get("user")
    if not isinstance(user, str):
        raise CannotFix("The log contains no valid user id. Add the id to the allowlist yourself.")
    yield from admit_user(probes, finding.data["platform"], user)
