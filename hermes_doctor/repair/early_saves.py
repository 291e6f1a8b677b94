"""Save data that only a running process still has open, before a run stops the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hermes_doctor.backup.vault import Vault
from hermes_doctor.model import CannotFix
from hermes_doctor.records.journal import Journal
from hermes_doctor.repair.targets import Item, Refused
from hermes_doctor.steps.base import Step


def has_early_save(item: Item) -> bool:
    """Whether one of the item's steps overrides `Step.save_first`."""
    return any(type(step).save_first is not Step.save_first for step in item.steps)


def save_first(
    items: Sequence[Item], vault: Vault, receipt: Journal, guards: contextlib.ExitStack
) -> None:
    """Call `save_first` of every step; raise Refused if one fails, before anything is stopped."""
    planned = [item for item in items if item.record.outcome != "left"]
    for step in [step for item in planned for step in item.steps]:
        guards.callback(step.close)
        try:
            step.save_first(vault, receipt)
        except CannotFix as why:
            concerned = [n for n, item in enumerate(items) if step in item.steps]
            raise Refused(str(why), concerned) from why
