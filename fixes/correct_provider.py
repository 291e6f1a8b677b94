"""Correct the name of a provider in config.yaml, or enable a provider that is disabled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="correct-provider",
    codes=["CFG-PROVIDER-UNKNOWN", "CFG-BUILTIN-NAME", "CFG-FALLBACK-DEAD"],
    safety=Safety.CONFIRM,
)
def correct_provider(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the name of the provider, or enable it."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "correct the provider")
