"""What a run does: its items, one merged target for each path, and the machine actions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermes_doctor.backup.records.journal import ItemRecord, Journal, MachineActionRecord, State
from hermes_doctor.core.home import is_database
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.step import Change, MachineAction, Step
from hermes_doctor.repair.steps.gateway import GatewayStep

Verify = Callable[[Sequence[ItemRecord]], Sequence[str | None]]
"""Returns for each item what is still wrong, or None if it is fixed."""


@dataclass
class Item:
    """One finding's steps in a run, with their record in the journal."""

    record: ItemRecord
    steps: Sequence[Step]

    @property
    def saves_first(self) -> bool:
        """Whether one of its steps overrides `Step.save_first`."""
        return any(type(step).save_first is not Step.save_first for step in self.steps)


@dataclass
class Target:
    """One path and the merged changes that all items make to it."""

    change: Change
    items: list[int]
    before: State = field(default_factory=lambda: State("absent"))

    @property
    def path(self) -> Path:
        return self.change.path

    @property
    def replaces(self) -> bool:
        """Whether the file is replaced or removed, and not only its mode or owner changed."""
        return self.change.absent or self.change.make is not None

    @property
    def is_database(self) -> bool:
        """Whether a database, or a sidecar of one, is replaced."""
        return self.replaces and is_database(self.path)


class Refused(CannotFix):
    """Raised if some items cannot be done; nothing has been changed yet."""

    def __init__(self, why: str, items: Sequence[int], *, tried_on_copy: bool = False) -> None:
        super().__init__(why)
        self.items = items
        self.tried_on_copy = tried_on_copy
        """The repair was tried on a copy and was not enough."""


def refuse_step(items: Sequence[Item], step: Step, why: CannotFix) -> Refused:
    """The refusal of all items that need a step which declines."""
    return Refused(str(why), [n for n, item in enumerate(items) if step in item.steps])


def targets_of(items: Sequence[Item], *, gateway_stopped: bool = False) -> list[Target]:
    """Make one target for each path; an item that contradicts an earlier one is left out.

    With `gateway_stopped`, the gateway has closed its databases, which changed them, and it may
    have saved what a restore replaces anyway. So their current state becomes the expected one.
    """
    found: dict[Path, Target] = {}
    for number, item in enumerate(items):
        mine: dict[Path, Change] = {}
        if item.record.outcome == "left":
            continue
        for change in _changes(items, item, gateway_stopped=gateway_stopped):
            if gateway_stopped and (is_database(change.path) or change.restored):
                change = replace(change, expect=snapshot(change.path))
            other = found.get(change.path)
            present = mine.get(change.path) or (other.change if other else None)
            both = _merge(present, change) if present else change
            if both is None:
                item.record.outcome = "left"
                item.record.reason = f"{change.path.name} is changed by another fix first"
                break
            mine[change.path] = both
        else:
            for path, change in mine.items():
                target = found.setdefault(path, Target(change, []))
                target.change = change
                target.items.append(number)
    return list(found.values())


def _changes(items: Sequence[Item], item: Item, *, gateway_stopped: bool) -> Iterator[Change]:
    """Yield an item's changes; a step that declines after the gateway stopped refuses its items."""
    for step in item.steps:
        try:
            yield from step.changes()
        except CannotFix as why:
            if not gateway_stopped:
                raise
            raise refuse_step(items, step, why) from why


def gateway_steps(items: Sequence[Item]) -> list[GatewayStep]:
    planned = [item for item in items if item.record.outcome == "planned"]
    return [step for item in planned for step in item.steps if isinstance(step, GatewayStep)]


def collect_notes(items: Sequence[Item]) -> None:
    """Collect the notes of all steps, those of the gateway once: several items may restart it."""
    is_told = False
    for item in items:
        item.record.notes = []
        for step in item.steps:
            if not (isinstance(step, GatewayStep) and is_told):
                item.record.notes += step.notes()
            is_told = is_told or isinstance(step, GatewayStep)


def leave_other_supervisors(items: Sequence[Item]) -> None:
    """Leave items for a later run if another supervisor than the first item's runs the gateway."""
    first = None
    for item in items:
        for step in item.steps:
            if isinstance(step, GatewayStep):
                first = first or step.service
                if step.service != first:
                    item.record.outcome = "left"
                    item.record.reason = "the supervisor of the gateway is changed first"


def _merge(change: Change, two: Change) -> Change | None:
    """Merge two changes of one path; return None if they contradict each other."""
    if change == two:
        return change
    if change.expect != two.expect or (change.absent or two.absent):
        return change if change == two else None
    if change.make is not None and two.make is not None:
        return None
    for a, b in ((change.mode, two.mode), (change.owner, two.owner)):
        if a is not None and b is not None and a != b:
            return None
    return replace(
        change,
        make=change.make or two.make,
        mode=change.mode if two.mode is None else two.mode,
        owner=change.owner or two.owner,
        from_root=change.from_root or two.from_root,
        beside=change.beside + two.beside,
        restored=change.restored or two.restored,
        room=max(change.room, two.room),
    )


class MachineActions:
    """The machine actions of one run, without duplicates when several items need the same one.

    Each is recorded in the journal before it starts.
    """

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
