"""Stop the gateway while a run changes files, and start it again afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system import disk, progress

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.records.journal import Journal, Journals
    from hermes_doctor.steps.gateway import GatewayControlProtocol, GatewayStep

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

    def __init__(self, steps: Sequence[GatewayStep], log: Journal, journals: Journals) -> None:
        self.service: GatewayControlProtocol | None = steps[0].service if steps else None
        self.restart = any(step.restart for step in steps)
        self.log = log
        self.journals = journals
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
            self.log.was_running = self.service.running() is not None or self.service.restless()
        stopped = self.restart and self._stop()
        if self._looped():
            self.log.was_running = False  # in a crash loop it did not work, either
        self._found_down = self.restart and not stopped
        return stopped

    def start(self, *, keeps_changes: bool = False) -> None:
        """Start the gateway with the new files, unless it was stopped by hand since the plan.

        With `keeps_changes`, a gateway that was in a crash loop and still is proves nothing against
        them: there may be a second cause.
        """
        if self._stays_down:
            if self.log.gateway == STOPPED:
                comes_back = getattr(self.service, "comes_back", None)  # not in older plugins
                self.log.gateway = COMES_BACK if comes_back and comes_back() else LEFT
            return
        if self._found_down and not self._starts:
            return
        if self.service is not None and (
            self.log.gateway == STOPPED or self.service.running() is None
        ):
            self._tried = True
            try:
                self._start(self.service)
            except CannotFix as why:
                if not (keeps_changes and self._looped()):
                    raise
                self.still_fails = text("the gateway still stops: {reason}", reason=why)
                self.log.gateway = STARTED
                self.journals.save(self.log)

    def _looped(self) -> bool:
        """Whether the gateway was in a crash loop; a service of an older plugin does not say."""
        return bool(getattr(self.service, "looped", False))

    def unconnected(self) -> Mapping[str, str]:
        """The platforms that did not connect after this run started the gateway, and why."""
        if self.service is None or self.log.gateway != STARTED:
            return {}
        return self.service.unconnected()

    def stop_for_rollback(self) -> None:
        """Stop the gateway before files are rolled back: it must not run while they change."""
        if self.restart or self.log.gateway == STARTED:
            self._stop()

    def start_after_rollback(self, *, changed: bool) -> None:
        """After a failure, start the gateway again, or note in the journal that it could not be.

        If nothing was rolled back, a start that failed once would only fail again.
        """
        if self.service is None or self.log.gateway not in (STOPPED, LEFT, COMES_BACK):
            return
        if self._tried and not changed:
            return
        try:
            pid = self.service.settled(STOP_LIMIT)
            if pid is None:
                self._start(self.service)
            elif pid == self._pid and pid == self.service.asked():
                self.log.gateway, self.log.asked = ASKED, pid
                self.log.note = f"{self.log.note}; {pending_stop_message(pid)}"
            else:
                self.log.gateway = None if pid == self._pid else STARTED
        except (CannotFix, CouldNotLook, OSError) as error:
            why = error if isinstance(error, CannotFix | CouldNotLook) else type(error).__name__
            self.log.note = (
                f"{self.log.note}; the gateway could not be started again ({str(why).rstrip('.')})"
            )

    def _stop(self) -> bool:
        if self.service is None:
            return False
        self._pid = self.service.running()
        if self._pid is None and not self.service.restless():
            return False
        self.service.remember(self.journals.folder(self.log) / ORIGIN)
        self.log.gateway = STOPPED
        self.journals.save(self.log)
        progress.report(f"waiting for the gateway to stop (at most {STOP_LIMIT:.0f} s)")
        self.service.stop(STOP_LIMIT)
        return True

    def _start(self, service: GatewayControlProtocol) -> None:
        progress.report(f"waiting for the gateway to start (at most {START_LIMIT:.0f} s)")
        service.start(START_LIMIT)
        self.log.gateway = STARTED
        self.journals.save(self.log)


def pending_stop_message(pid: int) -> str:
    """The message about a process that was asked to stop and is not finished yet."""
    return (
        f"process {pid} stops when its work is done, and the next `hermes-doctor fix --apply` "
        f"starts the gateway again"
    )


def remove_origin_file(journals: Journals, log: Journal) -> None:
    """Remove the file that was kept to start the gateway again."""
    with contextlib.suppress(OSError):
        disk.remove(journals.folder(log) / ORIGIN)


def start_stopped_gateway(home: Home, journals: Journals, log: Journal) -> str:
    """Start the gateway that an interrupted run had stopped; return a sentence for the user."""
    from hermes_doctor.gateway import control
    from hermes_doctor.probes.probes import Probes

    if log.gateway not in (STOPPED, ASKED):
        return ""
    try:
        service = control.gateway_control(Probes(home))
        service.recall(journals.folder(log) / ORIGIN)
        pid = service.settled(STOP_LIMIT)
        if pid is not None and pid == log.asked:
            return f" The gateway has not stopped yet: {pending_stop_message(pid)}."
        if pid is None:
            service.start(START_LIMIT)
            pid = service.running()
        log.gateway, log.asked = STARTED, None
    except (CannotFix, CouldNotLook, OSError) as why:
        log.gateway, log.asked = STOPPED, None
        reason = str(why).rstrip(".")
        return (
            " The run had stopped the gateway, which could not be started again "
            f"({reason}). Start it."
        )
    return f" The gateway, which the run had stopped, is running again (process {pid})."
