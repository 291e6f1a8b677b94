"""What a run asks of the machine beside changing files, written down before it is asked."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.records.journal import ActRecord, Journal, Journals
from hermes_doctor.steps.base import Act

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.repair.targets import Item


class Acts:
    """The acts of one run, each once, however many items want it."""

    def __init__(self, items: Sequence[Item], log: Journal, book: Journals) -> None:
        self._log = log
        self._book = book
        self._acts: list[tuple[Act, ActRecord]] = []
        for number, item in enumerate(items):
            if item.record.outcome == "planned":
                for step in item.steps:
                    if isinstance(step, Act):
                        self._add(step, number)
        log.acts = [record for _, record in self._acts]

    def _add(self, act: Act, item: int) -> None:
        for known, record in self._acts:
            if (known.kind, known.words()) == (act.kind, act.words()):
                record.items.append(item)
                return
        self._acts.append((act, ActRecord(act.kind, act.words(), [item])))

    def __bool__(self) -> bool:
        return bool(self._acts)

    def refused(self) -> Iterator[tuple[str, list[int]]]:
        """Those that cannot be done: why, and which items wanted them."""
        for act, record in self._acts:
            try:
                act.refuse()
            except CannotFix as why:
                yield str(why), record.items

    def do(self) -> None:
        """Do them in the order in which they were planned."""
        for act, record in self._acts:
            record.begun = True
            self._book.save(self._log)
            act.do()

    def items(self) -> list[int]:
        """Every item that wants one."""
        return [item for _, record in self._acts for item in record.items]

    def begun(self) -> list[ActRecord]:
        """Those that leave something which can be taken back."""
        return [record for act, record in self._acts if record.begun and act.lasting]

    def of(self, items: Collection[int]) -> list[ActRecord]:
        """Those of them that some items wanted."""
        return [record for record in self.begun() if set(record.items) & set(items)]

    def take_back(self, items: Collection[int] | None = None) -> None:
        """Take back what these items wanted, the last first."""
        for act, record in reversed(self._acts):
            if record.begun and (items is None or set(record.items) & set(items)):
                taken_back(act, record)


def taken_back(act: Act, record: ActRecord) -> None:
    """Take one back; what cannot be stays done, and is not marked as taken back."""
    with contextlib.suppress(CannotFix, CouldNotLook, OSError):
        act.take_back()
        record.reverted = True


def recover(home: Home, log: Journal) -> None:
    """Take back what a run that was cut off had begun."""
    from hermes_doctor.steps import machine

    for record in reversed(log.acts):
        act = machine.remade(home, record)
        if record.begun and not record.reverted and act is not None:
            taken_back(act, record)
