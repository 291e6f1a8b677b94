"""The input of a run: its items, and one merged target for each path that they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermes_doctor.backup.records.journal import ItemRecord, State
from hermes_doctor.core.home import is_database
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.steps.gateway import GatewayControlProtocol, GatewayStep

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
        """The path."""
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
    """The gateway steps of the planned items."""
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
    first: GatewayControlProtocol | None = None
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
