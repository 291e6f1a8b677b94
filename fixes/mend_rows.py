"""Correct rows of state.db whose values make Hermes fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_FAULTS = {
    "DB-ACTIVE-NULL": ("active", "mark messages active that are neither active nor not"),
    "DB-TITLES": ("titles", "number the titles that several sessions have"),
    "DB-JSON": ("settings", "take away settings of sessions that are no JSON"),
    "DB-SCHEMAVERSION": ("version", "make its schema's version a number"),
}


@fix(id="mend-rows", codes=list(_FAULTS), safety=Safety.SAFE)
def mend_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Change on a copy the rows that make Hermes fail, and no others."""
    from hermes_doctor.api import ReplaceDatabase, mend_rows as mend

    fault, why = _FAULTS[finding.code]
    path = probes.home / finding.subject
    yield ReplaceDatabase(path, lambda copy: mend(copy, fault), why=why, expect=snapshot(path))
