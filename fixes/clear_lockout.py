"""Remove the pairing lockout that Hermes sets after five wrong codes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="clear-lockout", codes=["PAIRING-LOCKOUT"], safety=Safety.CONFIRM)
def clear_lockout(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Allow pairing again after too many wrong codes."""
    from hermes_doctor.api import unlock_pairing

    yield from unlock_pairing(probes, finding.data["platform"])
