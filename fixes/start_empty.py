"""Start with an empty database if nothing of the old one can be read and no copy exists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="start-empty",
    codes=[
        "DB-NOTADB",
        "DB-EMPTY",
        "DB-GONE",
        "DB-TRUNCATED",
        "DB-MALFORMED",
        "KANBAN-CORRUPT",
    ],
    safety=Safety.CONFIRM,
    gives_up_data=True,
)
def start_empty(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Start with an empty database; keep the damaged file in the backup."""
    from hermes_doctor.api import start_empty as new_database

    yield from new_database(probes, probes.home / finding.subject)
