"""Rebuild the search index of a database from its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="rebuild-fts", codes=["DB-FTS-CORRUPT"], safety=Safety.SAFE, then="salvage-rows")
def rebuild_fts(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rebuild the search index of the database."""
    from hermes_doctor.api import database_repair

    path = probes.home / finding.subject
    yield database_repair(probes, path, ["full text"], why="rebuild its search index from its rows")
