"""Add rows to the message history that exist only in a write-ahead log set aside earlier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="add-log-rows", codes=["DB-WAL-ROWS"], safety=Safety.CONFIRM, optional=True)
def add_log_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add rows of a write-ahead log to the message history."""
    from hermes_doctor.api import MoveAside, add_rows

    path = probes.condition(probes.home / finding.data["database"]).files.path
    log = path.with_name(finding.subject)
    yield add_rows(probes, path, log)
    yield MoveAside(log, why="the database then has its rows")
