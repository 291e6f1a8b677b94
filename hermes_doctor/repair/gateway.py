"""The gateway while a run is at work: down when files change, up afterwards, never by accident."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system import disk

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.records.journal import Journal, Journals
    from hermes_doctor.steps.gateway import GatewayStep, Service

STOP_LIMIT, START_LIMIT = 300.0, 180.0
"""Seconds. A busy gateway drains for minutes; one with many platforms takes long to connect."""
ORIGIN = "origin.json"
"""Beside the journal while the gateway is down: what it takes to start it as it was."""
STOPPED, STARTED = "stopped", "started"
ASKED = "asked"
"""It was asked to end, is at a long answer, and will end: the next command starts it again."""


class Handover:
    """The one gateway of a run. It is started once on the new files, and once on the old ones."""

    def __init__(self, steps: Sequence[GatewayStep], log: Journal, book: Journals) -> None:
        self.service: Service | None = steps[0].service if steps else None
        self.restart = any(step.restart for step in steps)
        self.log = log
        self.book = book
        self._starts = any(step.expected or not step.restart for step in steps)
        """Whether it is to run afterwards although it did not run before."""
        self._found_down = False
        self._tried = False
        self._pid: int | None = None
        """The process that was to be stopped."""

    def __bool__(self) -> bool:
        return self.service is not None

    def excused(self) -> list[int]:
        """The process that may have databases open now, since it is stopped before they change."""
        pid = self.service.running() if self.service and self.restart else None
        return [pid] if pid is not None else []

    def stop(self) -> bool:
        """Have it down before the files change; whether that took anything."""
        stopped = self.restart and self._stop()
        self._found_down = self.restart and not stopped
        return stopped

    def start(self) -> None:
        """Have it up on the new files; one that somebody stopped since the plan stays down."""
        if self._found_down and not self._starts:
            return
        if self.service is not None and (
            self.log.gateway == STOPPED or self.service.running() is None
        ):
            self._tried = True
            self._start(self.service)

    def halt(self) -> None:
        """Have it down before files are given back: it must not run on while they change."""
        if self.restart or self.log.gateway == STARTED:
            self._stop()

    def again(self, *, changed: bool) -> None:
        """After a failure: it must not stay down because of us, at least not silently.

        Where nothing was given back, what failed once would only fail again.
        """
        if self.service is None or self.log.gateway != STOPPED:
            return
        if self._tried and not changed:
            return
        try:
            pid = self.service.settled(STOP_LIMIT)
            if pid is None:
                self._start(self.service)
            elif pid == self._pid and pid == self.service.asked():
                self.log.gateway, self.log.asked = ASKED, pid
                self.log.note = f"{self.log.note}; {will_end(pid)}"
            else:
                self.log.gateway = None if pid == self._pid else STARTED
        except (CannotFix, CouldNotLook, OSError) as error:
            why = error if isinstance(error, CannotFix | CouldNotLook) else type(error).__name__
            self.log.note = f"{self.log.note}; the gateway could not be started again ({why})"

    def forget(self) -> None:
        """Remove what was kept for the case that we are cut off."""
        forget(self.book, self.log)

    def _stop(self) -> bool:
        if self.service is None:
            return False
        self._pid = self.service.running()
        if self._pid is None and not self.service.restless():
            return False
        self.service.remember(self.book.folder(self.log) / ORIGIN)
        self.log.gateway = STOPPED
        self.book.save(self.log)
        self.service.stop(STOP_LIMIT)
        return True

    def _start(self, service: Service) -> None:
        service.start(START_LIMIT)
        self.log.gateway = STARTED
        self.book.save(self.log)


def will_end(pid: int) -> str:
    """What is said of a process that was asked to end and is not through yet."""
    return (
        f"process {pid} ends as soon as it is done, and the next `hermes-doctor fix --apply` "
        f"starts the gateway again"
    )


def forget(book: Journals, log: Journal) -> None:
    """Remove what was kept of a gateway that is up again, or that nobody brings up any more."""
    with contextlib.suppress(OSError):
        disk.remove(book.folder(log) / ORIGIN)


def bring_back(home: Home, book: Journals, log: Journal) -> str:
    """Start the gateway that a run had stopped before it was cut off; a sentence about it."""
    from hermes_doctor.gateway import control
    from hermes_doctor.probes.probes import Probes

    if log.gateway not in (STOPPED, ASKED):
        return ""
    try:
        service = control.gateway_service(Probes(home))
        service.recall(book.folder(log) / ORIGIN)
        pid = service.settled(STOP_LIMIT)
        if pid is not None and pid == log.asked:
            return f" Still {will_end(pid)}."
        if pid is None:
            service.start(START_LIMIT)
            pid = service.running()
        log.gateway, log.asked = STARTED, None
    except (CannotFix, CouldNotLook, OSError) as why:
        log.gateway, log.asked = STOPPED, None
        return f" The gateway was stopped for it and could not be started again ({why}): start it."
    return f" The gateway, which it had stopped, runs again (process {pid})."
