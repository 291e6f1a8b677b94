"""Rebuild the header of a database from the rest of the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="rewrite-header",
    codes=["DB-NOTADB", "DB-MALFORMED", "KANBAN-CORRUPT", "RESPSTORE"],
    safety=Safety.SAFE,
    then="salvage-rows",
)
def rewrite_header(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rebuild the header of the database."""
    from hermes_doctor.api import database_repair

    path = probes.home / finding.subject
    yield database_repair(probes, path, ["header"], why="rebuild its header")
