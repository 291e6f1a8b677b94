"""Enable systemd lingering, so the gateway keeps running when its user logs out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="enable-linger", codes=["GW-LINGER"], safety=Safety.SAFE)
def enable_linger(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Keep the gateway running without a login."""
    from hermes_doctor.api import EnableLinger

    if probes.supervision().linger is not False:
        raise CannotFix("Lingering is enabled already. Nothing to do.")
    yield EnableLinger(probes.home)
