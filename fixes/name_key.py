"""Set a provider's `key_env` to the variable that is named after the provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="name-key", codes=["PROVIDER-KEY", "CRED-STRANGER"], safety=Safety.CONFIRM)
def name_key(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Name the variable that has the key of the provider."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "name the variable with the key")
