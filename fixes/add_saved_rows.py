"""Add messages to the history that exist only in a backup of its deleted write-ahead log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="add-saved-rows", codes=["DB-SAVED-ROWS"], safety=Safety.CONFIRM, optional=True)
def add_saved_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add messages from a backup to the message history."""
    from hermes_doctor.api import add_saved_rows as added

    yield added(probes, finding.data["backup"], finding.data["database"])
