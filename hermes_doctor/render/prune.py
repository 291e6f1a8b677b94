"""Shows which backups a pruning rule selects but must not remove."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.backup.vault.prune_rules import PruneSelection
from hermes_doctor.core.terminal.lines import Line, row


def protected_lines(prune_selection: PruneSelection) -> Iterator[Line]:
    """One line for each backup that is still needed, and how to remove it anyway."""
    for id, why in prune_selection.protected.items():
        yield row(("! ", "warning"), f"keep backup {id}: {why}", hang=2)
    if prune_selection.protected:
        text = "To remove such a backup anyway: hermes-doctor backup prune ID"
        yield row((text, "faint"), indent=2)
