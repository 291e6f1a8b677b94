"""Rewrite a setting in the form and in the place in which Hermes reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="rewrite-setting",
    codes=[
        "CFG-KEY-ENV",
        "CFG-UNRESOLVED",
        "CFG-TYPE",
        "CFG-CONTEXT-LENGTH",
        "CFG-PROVIDERS-SHAPE",
        "CFG-FALLBACK-STR",
    ],
    safety=Safety.SAFE,
)
def rewrite_setting(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Write the setting in the form that Hermes reads."""
    from hermes_doctor.api import do_edits

    yield from do_edits(probes, finding, "use the form that Hermes reads")
