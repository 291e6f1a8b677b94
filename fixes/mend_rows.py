"""Correct rows of state.db whose values make Hermes fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_FAULTS = {
    "DB-ACTIVE-NULL": ("active", "mark messages without a mark as active"),
    "DB-TITLES": ("titles", "number titles that several conversations share"),
    "DB-JSON": ("settings", "remove settings of conversations that are not valid JSON"),
    "DB-SCHEMAVERSION": ("version", "make its schema version a number"),
}


@fix(id="mend-rows", codes=list(_FAULTS), safety=Safety.SAFE)
def mend_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the rows that make Hermes fail."""
    from hermes_doctor.api import ReplaceDatabase, mend_rows as mend

    fault, why = _FAULTS[finding.code]
    path = probes.home / finding.subject
    yield ReplaceDatabase(path, lambda copy: mend(copy, fault), why=why, expect=snapshot(path))
