"""Repair a damaged JSON store from its intact entries or from its newest sound copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step

_CODES = [
    "AUTHJSON",
    "CRON-JOBS-CORRUPT",
    "PAIRING-CORRUPT",
    "SESSION-ROUTE-STALE",
    "STORE-CORRUPT",
]


@fix(id="restore-store", codes=_CODES, safety=Safety.CONFIRM)
def restore_store(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Repair the file from its intact parts or a copy."""
    from hermes_doctor.api import store_steps

    if newer := probes.newer():
        # the entries depend on the release
        raise CannotFix(text("{reason}. Update hermes-doctor first.", reason=newer))
    file = next((one for one in probes.stores().found if one.name == finding.subject), None)
    if file is None or file.flaw is None:
        return
    repair = probes.store_repair(file)
    if repair is None:
        raise CannotFix("No intact copy was found. Restore the file from your own backup.")
    yield from store_steps(probes, file, repair)
