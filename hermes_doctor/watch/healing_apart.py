"""Repairs in a process of its own: the watch stays small, and what is started is not its child.

The locks belong to the watch. What the repair changes in the watch's memory comes back with its
events. If the process is cut off, the next round finishes the run, as after a power failure.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hermes_doctor.model import CouldNotLook, Finding
from hermes_doctor.watch.child_process import ChildFailed, ChildProcesses
from hermes_doctor.watch.events import WatchEvent

if TYPE_CHECKING:
    from hermes_doctor.watch.heal import Healer

Outcome = tuple[list[WatchEvent], bool]
_KEPT = ("said", "busy_since", "repairs", "repaired", "failures")
"""What a repair changes in the memory of the watch."""


class RepairApart:
    """Does the repairs of one healer, each in a process that ends with the watch."""

    def __init__(self, healer: Healer, children: ChildProcesses) -> None:
        self._healer, self._children = healer, children
        self._told = False

    def __call__(self, work: Callable[[], Outcome], due: Sequence[Finding]) -> Outcome:
        """Repair; return the events and whether to examine again at once."""
        healer = self._healer
        self._told = False
        try:
            outcome, changed = self._children.run(
                lambda: (work(), self._changes()),
                keep=healer.lock_descriptors(),
                idle=self._pass_on,
            )
        except (ChildFailed, CouldNotLook) as why:
            return self._cut_off(due, str(why)), False
        self._adopt(changed)
        events, again = outcome
        return events, again

    def _changes(self) -> dict[str, Any]:
        """What the repair changed, in its process."""
        healer = self._healer
        memory = {name: getattr(healer.memory, name) for name in _KEPT}
        return memory | {"later": healer.later, "ending": healer.signals.ending}

    def _adopt(self, changed: dict[str, Any]) -> None:
        healer = self._healer
        for name in _KEPT:
            setattr(healer.memory, name, changed[name])
        healer.ledger.repairs = healer.memory.repairs
        healer.ledger.failures = healer.memory.failures
        healer.later = changed["later"]
        healer.signals.ending = healer.signals.ending or changed["ending"]
        healer.lease.refusal()  # a lease that the process took is ours from now on

    def _cut_off(self, due: Sequence[Finding], why: str) -> list[WatchEvent]:
        """Count a repair that was cut off; it was written down before it began."""
        healer = self._healer
        known = healer.store.load(healer.clock.boot)
        if known is not None:
            healer.memory.repairs, healer.memory.repaired = known.repairs, known.repaired
            healer.ledger.repairs = known.repairs
        healer.lease.refusal()
        return healer.failed(due, f"the repair was cut off: {why}", healer.clock.now())

    def _pass_on(self, pid: int) -> None:
        """Tell the process once that the watch was told to stop: it then finishes or rolls back."""
        if self._healer.signals.ending and not self._told:
            self._told = True
            os.kill(pid, signal.SIGTERM)
