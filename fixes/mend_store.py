"""Repair a JSON store without losing an entry, or remove it if it is only a cache."""

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


@fix(id="mend-store", codes=_CODES, safety=Safety.SAFE, then="restore-store")
def mend_store(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Repair the damaged file; keep every entry."""
    from hermes_doctor.api import Remove, store_steps

    if newer := probes.newer():
        # the entries depend on the release
        raise CannotFix(text("{reason}. Update hermes-doctor first.", reason=newer))
    file = next((one for one in probes.stores().found if one.name == finding.subject), None)
    if file is None:
        return
    if file.store.cache:
        yield Remove(file.path, why="Hermes cannot read it")
        return
    repair = probes.store_repair(file)
    if repair is None or not repair.lossless:
        raise CannotFix(
            "The file cannot be repaired without losing entries. Restore it from a backup."
        )
    yield from store_steps(probes, file, repair)
