"""Delete unreadable responses and dangling conversations from the API response cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, snapshot

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="evict-responses", codes=["RESPSTORE"], safety=Safety.SAFE)
def evict_responses(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove unreadable answers from the API server's cache."""
    from hermes_doctor.api import ReplaceDatabase, evict

    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path, evict, why="remove the rows that cannot be read", expect=snapshot(path)
    )
