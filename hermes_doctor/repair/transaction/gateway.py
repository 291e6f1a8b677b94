"""Stop the gateway while a run changes files, and start it again afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, progress
from hermes_doctor.repair.transaction.targets import gateway_steps

if TYPE_CHECKING:
    from hermes_doctor.backup.records.journal import Journal
    from hermes_doctor.repair.gateway.base import GatewayControl
    from hermes_doctor.repair.steps.gateway import GatewayStep
    from hermes_doctor.repair.transaction.targets import Item

STOP_LIMIT, START_LIMIT = 300.0, 180.0
"""Seconds. A busy gateway drains for minutes; one with many platforms takes long to connect."""
ORIGIN = "origin.json"
"""File beside the journal with what is needed to start the stopped gateway as it was before."""
STOPPED, STARTED = "stopped", "started"
LEFT = "left-stopped"
"""An undo stopped it, because no gateway ran before the repair."""
COMES_BACK = "comes-back"
"""The same, but what started it still runs, such as a loop in a shell: it starts it again."""
ASKED = "asked"
"""It was asked to stop but is still writing a long answer: the next command starts it again."""


class GatewayPause:
    """Stops and starts the one gateway of a run.

    It starts the gateway once with the new files and, after a rollback, once with the old ones.
    """

    def __init__(self, steps: Sequence[GatewayStep], journal: Journal) -> None:
        self.service: GatewayControl | None = steps[0].service if steps else None
        self.restart = any(step.restart for step in steps)
        self.journal = journal
        self._starts = any(step.expected or not step.restart for step in steps)
        """Whether to start it even if it was not running before."""
        self._stays_down = any(step.stays_down for step in steps)
        self._found_down = False
        self._tried = False
        self._pid: int | None = None
        """The process that was to be stopped."""
        self.still_fails = ""
        """Why a gateway that was in a crash loop did not stay up with the new files, either."""

    def __bool__(self) -> bool:
        return self.service is not None

    def allowed_holders(self) -> list[int]:
        """Processes that may have databases open, because they are stopped before files change."""
        pid = self.service.running() if self.service and self.restart else None
        return [pid] if pid is not None else []

    def stop(self) -> bool:
        """Stop the gateway before the files change; return whether there was one to stop."""
        if self.service is not None:
            self.journal.was_running = self.service.running() is not None or self.service.restless()
        stopped = self.restart and self._stop()
        if self._looped():
            self.journal.was_running = False  # in a crash loop it did not work, either
        self._found_down = self.restart and not stopped
        return stopped

    def start(self, *, keeps_changes: bool = False) -> None:
        """Start the gateway with the new files, unless it was stopped by hand since the plan.

        With `keeps_changes`, a gateway that was in a crash loop and still is proves nothing against
        them: there may be a second cause.
        """
        if self._stays_down:
            if self.journal.gateway == STOPPED:
                comes_back = getattr(self.service, "comes_back", None)  # not in older plugins
                self.journal.gateway = COMES_BACK if comes_back and comes_back() else LEFT
            return
        if self._found_down and not self._starts:
            return
        if self.service is not None and (
            self.journal.gateway == STOPPED or self.service.running() is None
        ):
            self._tried = True
            try:
                self._start(self.service)
            except CannotFix as why:
                if not (keeps_changes and self._looped()):
                    raise
                self.still_fails = text("the gateway still stops: {reason}", reason=why)
                self.journal.gateway = STARTED
                self.journal.save()

    def _looped(self) -> bool:
        """Whether the gateway was in a crash loop; a service of an older plugin does not say."""
        return bool(getattr(self.service, "looped", False))

    def unconnected_items(self, items: Sequence[Item]) -> dict[int, str]:
        """The items whose platforms did not connect after this run started the gateway, and why."""
        if self.service is None or self.journal.gateway != STARTED:
            return {}
        missing = self.service.unconnected()
        unconnected: dict[int, str] = {}
        for number, item in enumerate(items):
            platforms = [name for step in gateway_steps([item]) for name in step.platforms]
            reasons = [missing[name] for name in platforms if name in missing]
            if gateway_steps([item]) and self.still_fails:
                reasons = [self.still_fails]
            if reasons:
                unconnected[number] = "; ".join(dict.fromkeys(reasons))
        return unconnected

    def stop_for_rollback(self) -> None:
        """Stop the gateway before files are rolled back: it must not run while they change."""
        if self.restart or self.journal.gateway == STARTED:
            self._stop()

    def start_after_rollback(self, *, changed: bool) -> None:
        """After a failure, start the gateway again, or note in the journal that it could not be.

        If nothing was rolled back, a start that failed once would only fail again.
        """
        if self.service is None or self.journal.gateway not in (STOPPED, LEFT, COMES_BACK):
            return
        if self._tried and not changed:
            return
        try:
            pid = self.service.settled(STOP_LIMIT)
            if pid is None:
                self._start(self.service)
            elif pid == self._pid and pid == self.service.asked():
                self.journal.gateway, self.journal.asked = ASKED, pid
                self.journal.note = f"{self.journal.note}; {pending_stop_message(pid)}"
            else:
                self.journal.gateway = None if pid == self._pid else STARTED
        except (CannotFix, CouldNotLook, OSError) as error:
            why = error if isinstance(error, CannotFix | CouldNotLook) else type(error).__name__
            self.journal.note = (
                f"{self.journal.note}; the gateway could not be started again "
                f"({str(why).rstrip('.')})"
            )

    def _stop(self) -> bool:
        if self.service is None:
            return False
        self._pid = self.service.running()
        if self._pid is None and not self.service.restless():
            return False
        self.service.remember(self.journal.folder / ORIGIN)
        self.journal.gateway = STOPPED
        self.journal.save()
        progress.report(f"waiting for the gateway to stop (at most {STOP_LIMIT:.0f} s)")
        self.service.stop(STOP_LIMIT)
        return True

    def _start(self, service: GatewayControl) -> None:
        progress.report(f"waiting for the gateway to start (at most {START_LIMIT:.0f} s)")
        service.start(START_LIMIT)
        self.journal.gateway = STARTED
        self.journal.save()


def pending_stop_message(pid: int) -> str:
    """The message about a process that was asked to stop and is not finished yet."""
    return (
        f"process {pid} stops when its work is done, and the next `hermes-doctor fix --apply` "
        f"starts the gateway again"
    )


def remove_origin_file(journal: Journal) -> None:
    """Remove the file that was kept to start the gateway again."""
    with contextlib.suppress(OSError):
        disk.remove(journal.folder / ORIGIN)


def start_stopped_gateway(journal: Journal) -> str:
    """Start the gateway that an interrupted run had stopped; return a sentence for the user."""
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.repair.gateway import control

    if journal.gateway not in (STOPPED, ASKED):
        return ""
    try:
        service = control.gateway_control(Probes(journal.current_home))
        service.recall(journal.folder / ORIGIN)
        pid = service.settled(STOP_LIMIT)
        if pid is not None and pid == journal.asked:
            return f" The gateway has not stopped yet: {pending_stop_message(pid)}."
        if pid is None:
            service.start(START_LIMIT)
            pid = service.running()
        journal.gateway, journal.asked = STARTED, None
    except (CannotFix, CouldNotLook, OSError) as why:
        journal.gateway, journal.asked = STOPPED, None
        reason = str(why).rstrip(".")
        return (
            " The run had stopped the gateway, which could not be started again "
            f"({reason}). Start it."
        )
    return f" The gateway, which the run had stopped, is running again (process {pid})."
