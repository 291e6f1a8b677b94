"""Remove a variable from .env that conflicts with a model or provider setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="drop-variable", codes=["ENV-IGNORED"], safety=Safety.CONFIRM)
def drop_variable(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove a variable from .env that Hermes ignores."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "remove it, because Hermes uses config.yaml")
