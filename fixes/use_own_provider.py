"""Select the custom provider that the model's prefix names, and remove the prefix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="use-own-provider", codes=["CFG-PROVIDER-LEFT"], safety=Safety.SAFE)
def use_own_provider(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Use the provider that the model name contains."""
    from hermes_doctor.api import do_edits

    yield from do_edits(
        probes, finding, "set the provider and remove it from the name of the model"
    )
