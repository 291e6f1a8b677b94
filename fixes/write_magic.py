"""Restore the 16 magic bytes of a database, or its whole header if that is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="write-magic", codes=["DB-NOTADB"], safety=Safety.SAFE, then="salvage-rows")
def write_magic(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the first 16 bytes of the database."""
    from hermes_doctor.api import database_repair

    path = probes.home / finding.subject
    if not probes.header(path).magic:
        why = "restore its first 16 bytes, or its whole header if needed"
        yield database_repair(probes, path, ["magic", "header"], why=why)
