"""Execute the machine actions of a run, and record each one in the journal before it starts."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.backup.records.journal import Journal, MachineActionRecord
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.diagnosis.step import MachineAction

if TYPE_CHECKING:
    from hermes_doctor.repair.transaction.targets import Item


class MachineActions:
    """The machine actions of one run, without duplicates when several items need the same one."""

    def __init__(self, items: Sequence[Item], journal: Journal) -> None:
        self._journal = journal
        self._actions: list[tuple[MachineAction, MachineActionRecord]] = []
        for number, item in enumerate(items):
            if item.record.outcome == "planned":
                for step in item.steps:
                    if isinstance(step, MachineAction):
                        self._add(step, number)
        journal.acts = [record for _, record in self._actions]

    def _add(self, action: MachineAction, item: int) -> None:
        for known, record in self._actions:
            if (known.kind, known.words()) == (action.kind, action.words()):
                record.items.append(item)
                return
        self._actions.append((action, MachineActionRecord(action.kind, action.words(), [item])))

    def __bool__(self) -> bool:
        return bool(self._actions)

    def refused_actions(self) -> Iterator[tuple[str, list[int]]]:
        """Yield, for each action that cannot be done, the reason and the items that need it."""
        for act, record in self._actions:
            try:
                act.refuse()
            except CannotFix as why:
                yield str(why), record.items

    def do(self) -> None:
        """Execute the actions in the order of the plan."""
        for act, record in self._actions:
            record.begun = True
            self._journal.save()
            act.do()

    def items(self) -> list[int]:
        """The numbers of all items that need an action."""
        return [item for _, record in self._actions for item in record.items]

    def begun(self) -> list[MachineActionRecord]:
        """The actions that were started and leave something that can be reverted."""
        return [record for act, record in self._actions if record.begun and act.lasting]

    def of(self, items: Collection[int]) -> list[MachineActionRecord]:
        """The started, revertible actions that one of these items needs."""
        return [record for record in self.begun() if set(record.items) & set(items)]

    def revert(self, items: Collection[int] | None = None) -> None:
        """Revert the started actions of these items (of all by default), the last one first."""
        for act, record in reversed(self._actions):
            if record.begun and (items is None or set(record.items) & set(items)):
                revert_action(act, record)


def revert_action(action: MachineAction, record: MachineActionRecord) -> None:
    """Revert one action; if that fails, it is not marked as reverted."""
    with contextlib.suppress(CannotFix, CouldNotLook, OSError):
        action.revert()
        record.reverted = True


def revert_interrupted(journal: Journal) -> None:
    """Revert the actions that an interrupted run had started."""
    from hermes_doctor.repair.steps import machine

    for record in reversed(journal.acts):
        act = machine.action_from_record(journal.current_home, record)
        if record.begun and not record.reverted and act is not None:
            revert_action(act, record)
