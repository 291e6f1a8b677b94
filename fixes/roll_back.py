"""Roll back an interrupted transaction of a database from its journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="roll-back", codes=["DB-JOURNAL"], safety=Safety.SAFE, then="salvage-rows")
def roll_back(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Roll back the interrupted transaction."""
    from hermes_doctor.api import take_back

    yield take_back(probes.home / finding.subject)
