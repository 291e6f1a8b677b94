"""Set a missing model name, or replace a retired model by its successor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="set-model", codes=["CFG-MODEL"], safety=Safety.CONFIRM)
def set_model(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Set the model, or its successor."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "set the model")
