"""Select a configured provider in `model:`, as `switch-provider` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="use-configured-provider", codes=["CFG-PROVIDER-LEFT"], safety=Safety.CONFIRM)
def use_configured_provider(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Use the provider that config.yaml already describes."""
    from hermes_doctor.api import switch_steps

    yield from switch_steps(probes, finding.data["provider"], finding.data["model"])
