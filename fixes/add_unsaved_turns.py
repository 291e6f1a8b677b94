"""Add messages to the history that Hermes could not save and kept in other files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="add-retired-rows", codes=["DB-DELETED-WAL"], safety=Safety.CONFIRM)
def add_retired_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add messages of a retired -wal file to the message history."""
    from hermes_doctor.api import add_retired_rows as added

    yield added(probes, finding.data["folder"])


@fix(id="add-unsaved-turns", codes=["SESSION-UNSAVED"], safety=Safety.CONFIRM)
def add_unsaved_turns(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add unsaved messages to the message history."""
    from hermes_doctor.api import add_unsaved_turns as added

    yield added(probes)
