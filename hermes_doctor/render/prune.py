"""Shows which backups a pruning rule selects but must not remove."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.backup.prune_rules import PruneSelection
from hermes_doctor.terminal.lines import Line, row


def protected_lines(found: PruneSelection) -> Iterator[Line]:
    """One line for each backup that is still needed, and how to remove it anyway."""
    for id, why in found.protected.items():
        yield row(("! ", "warning"), f"keep backup {id}: {why}", hang=2)
    if found.protected:
        text = "To remove such a backup anyway: hermes-doctor backup prune ID"
        yield row((text, "faint"), indent=2)
