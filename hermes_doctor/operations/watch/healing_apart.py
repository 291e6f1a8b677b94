"""Repairs in a process of its own: the watch stays small, and what is started is not its child.

The locks belong to the watch. What the repair changes in the watch's memory comes back with its
events. If the process is cut off, the next round finishes the run, as after a power failure. As
root in another user's home, that process has become this user before it touches the home.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any

from hermes_doctor.core.model import CouldNotLook, Finding, Trouble
from hermes_doctor.core.system import root_parent
from hermes_doctor.operations.watch.child_process import MODULES, ChildFailed, ChildProcesses
from hermes_doctor.operations.watch.events import EventKind, WatchEvent
from hermes_doctor.operations.watch.heal import Healer

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
        for name in _KEPT:
            setattr(healer.memory, name, changed[name])
        healer.ledger.repairs = healer.memory.repairs
        _adopt(healer, changed)
        healer.lease.refusal()  # a lease that the process took is ours from now on
        events, again = outcome
        return events, again

    def _changes(self) -> dict[str, Any]:
        """What the repair changed, in its process."""
        healer = self._healer
        memory = {name: getattr(healer.memory, name) for name in _KEPT}
        return memory | {"later": healer.later, "ending": healer.signals.ending}

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


SeparateWork = Callable[..., Any]
"""Does the work in a process of the home's owner if root watches another user's home; in any other
home, does what is done `otherwise`."""


def _adopt(healer: Healer, changed: dict[str, Any]) -> None:
    """Take over what a process changed besides the memory of the watch."""
    healer.ledger.failures = healer.memory.failures
    healer.later = changed["later"]
    healer.signals.ending = healer.signals.ending or changed["ending"]


class RepairAsOwner:
    """Does all that a healer does in the home of another user in processes of that user.

    The watch keeps its memory and its locks. It counts the repairs itself, before each begins.
    """

    def __init__(self, healer: Healer, separate: SeparateWork) -> None:
        self._healer, self._separate = healer, separate
        self._begun = False

    def __call__(self, work: Callable[[], Outcome]) -> Outcome:
        """Look and repair; return the events and whether to examine again at once."""
        healer = self._healer
        self._begun = False
        descriptor = healer.lease.descriptor
        try:
            done = self._separate(
                lambda: self._in_process(work),
                otherwise=lambda: (work(), None),
                modules=MODULES,
                actions={"count_repair": self._count, "keep_lease": self._keep_lease},
                keep=() if descriptor is None else (descriptor,),
            )
        except (CouldNotLook, Trouble) as why:
            return self._cut_off(str(why)), False
        outcome: Outcome = done[0]
        if done[1] is not None:
            healer.memory.said, healer.memory.busy_since = done[1]["said"], done[1]["busy_since"]
            healer.memory.failures = done[1]["failures"]
            _adopt(healer, done[1])
            if not done[1]["leased"]:
                healer.lease.adopt(None)
        return outcome

    def _in_process(self, work: Callable[[], Outcome]) -> tuple[Outcome, dict[str, Any]]:
        """Do the work in the process, and return what it changed in the memory of the watch."""
        healer = self._healer
        healer.repair = lambda work, _: work()
        outcome = work()
        if (descriptor := healer.lease.descriptor) is not None:
            root_parent.ask_root("keep_lease", descriptors=(descriptor,))
        changed = {name: getattr(healer.memory, name) for name in ("said", "busy_since")}
        changed |= {"failures": healer.ledger.failures, "later": healer.later}
        ended = {"ending": healer.signals.ending, "leased": descriptor is not None}
        return outcome, changed | ended

    def _count(self) -> None:
        self._begun = True
        self._healer.count()

    def _keep_lease(self, *, descriptors: Sequence[int]) -> None:
        """Keep the lock of the home's lease, which the process has opened."""
        self._healer.lease.adopt(descriptors[0])

    def _cut_off(self, why: str) -> list[WatchEvent]:
        """Say that the process was cut off; what it was about to repair has been counted."""
        healer = self._healer
        told = why.rstrip(".")
        if self._begun:
            text = f"a repair was cut off: {told}; the next round finishes it"
            return [WatchEvent(EventKind.FAILED, healer.clock.now(), text)]
        return healer.held(("", "all"), f"could not look: {told}", healer.clock.now())
