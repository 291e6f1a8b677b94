"""Rewrite a key in .env so that both parsers of Hermes read the same value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Assign, Finding, Probes, Safety, differing, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="write-plainly", codes=["ENV-AMBIGUOUS"], safety=Safety.SAFE)
def write_plainly(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the key in .env in plain form."""
    from hermes_doctor.api import edit_env, reload

    for one in differing(probes.resolved().world):
        if one.name == finding.subject:
            yield from edit_env(probes, "write the key in plain form", Assign(one.name, one.value))
            yield from reload(probes, "key")
