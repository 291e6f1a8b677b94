"""Correct the settings that decide to which base URL Hermes sends model requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="mend-address", codes=["CFG-BASE-URL"], safety=Safety.CONFIRM)
def mend_address(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the address of the model provider."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "correct the address")
