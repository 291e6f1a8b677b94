"""Save what only a running process holds, before a run stops anything."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hermes_doctor.backup.vault import Vault
from hermes_doctor.model import CannotFix
from hermes_doctor.records.journal import Journal
from hermes_doctor.repair.targets import Item, Refused
from hermes_doctor.steps.base import Step


def saves(item: Item) -> bool:
    """Whether one of the item's steps saves something before anything else happens."""
    return any(type(step).save_first is not Step.save_first for step in item.steps)


def save_first(
    items: Sequence[Item], vault: Vault, receipt: Journal, guards: contextlib.ExitStack
) -> None:
    """Let every step save what it must; Refused, with nothing stopped, where one cannot."""
    planned = [item for item in items if item.record.outcome != "left"]
    for step in [step for item in planned for step in item.steps]:
        guards.callback(step.release)
        try:
            step.save_first(vault, receipt)
        except CannotFix as why:
            concerned = [n for n, item in enumerate(items) if step in item.steps]
            raise Refused(str(why), concerned) from why
