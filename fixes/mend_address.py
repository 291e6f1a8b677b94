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
    from hermes_doctor.api import Drop, Put, Rename, Unset, do_edits

    what = "correct the address"
    for edit in finding.data["edits"]:
        if isinstance(edit, Put) and edit.value == "custom":
            what = "set the provider to custom, so that Hermes uses your address"
        elif isinstance(edit, Rename):
            what = "give the address the name that Hermes reads"
        elif isinstance(edit, Drop):
            what = "delete the address that Hermes ignores"
        elif isinstance(edit, Unset):
            what = "remove the variable that overrides your address"
    yield from do_edits(probes, finding, what)
