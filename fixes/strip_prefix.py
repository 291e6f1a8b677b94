"""Remove the provider's name from the front of the model's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="strip-prefix", codes=["CFG-MODEL-PREFIX"], safety=Safety.CONFIRM)
def strip_prefix(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove the provider from the name of the model."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "remove the provider from the name of the model")
