"""Rewrite a database without its unused pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="compact-database", codes=["DB-BLOAT"], safety=Safety.SAFE)
def compact_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rewrite the database without its unused pages."""
    from hermes_doctor.api import ReplaceDatabase, compact

    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, compact, why="rewrite it without its unused pages", expect=snapshot(path)
    )
