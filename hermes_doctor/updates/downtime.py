"""Stops the gateways while their Hermes is being replaced, and starts them again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hermes_doctor.gateway import control
from hermes_doctor.home import Home, all_homes
from hermes_doctor.model import CannotFix
from hermes_doctor.planning import deleted_logs
from hermes_doctor.probes.probes import Probes
from hermes_doctor.records.updates import Update, UpdateRecords
from hermes_doctor.repair.gateway import START_LIMIT, STOP_LIMIT
from hermes_doctor.system import disk
from hermes_doctor.updates import images

if TYPE_CHECKING:
    from hermes_doctor.gateway.base import GatewayControl

Tell = Callable[[str], None]


def affected_homes(home: Home, update: Update) -> list[Home]:
    """The home, the homes inside it, and those whose gateway runs from the same Hermes."""
    where = os.path.realpath(update.before.where) if update.before else None

    def is_meant(one: Home) -> bool:
        if one.path.is_relative_to(home.path):
            return True
        found = Probes(one).installation()
        return found is not None and os.path.realpath(found.where) == where

    beside = [one for one in all_homes(home, []) if one.path != home.path]
    return [home, *(one for one in beside if is_meant(one))]


class GatewayHalt:
    """A gateway that is stopped or will be."""

    def __init__(
        self,
        home: Home,
        service: GatewayControl,
        update: Update,
        records: UpdateRecords,
        *,
        ran: bool,
    ) -> None:
        self.home = home
        self.service = service
        self.ran = ran
        """It ran before the update, so it is to run afterwards even if it is down now.

        The update may have broken it so that its supervisor gave up.
        """
        self.update = update
        self.records = records
        self.name = str(home.path)
        self.shown = f"the gateway of {home.profile}" if home.profile else "the gateway"
        self.file = records.origin(update, home)

    @property
    def is_down(self) -> bool:
        """Whether this tool has stopped it and not yet started it again."""
        return self.name in self.update.down

    def stop(self, report_progress: Tell) -> None:
        """Stop the gateway; record that first, in case we are killed."""
        idle = self.service.running() is None and not self.service.restless()
        if idle and not self.ran:
            return
        if not idle:
            deleted_logs.refuse_deleted_logs(self.home)
            report_progress(f"stopping {self.shown}")
        if not self.is_down:
            self.service.remember(self.file)
            self.update.down.append(self.name)
            self.records.save(self.update)
        self.service.stop(STOP_LIMIT)

    def start(self, report_progress: Tell) -> None:
        """Start the gateway with its original environment, if this tool stopped it."""
        if not self.is_down:
            return
        running, asked = self.service.running(), self.service.asked()
        if running is not None and running == asked:
            report_progress(
                f"process {running} stops when its work is done; the next run starts {self.shown}"
            )
            return
        report_progress(f"starting {self.shown}")
        if running is None:
            if asked is None:  # an earlier command stopped it
                self.service.recall(self.file)
            self.service.start(START_LIMIT)
        self.update.down.remove(self.name)
        self.records.save(self.update)
        with contextlib.suppress(OSError):
            disk.remove(self.file)


def gateways_to_stop(home: Home, update: Update) -> list[GatewayHalt]:
    """The gateways that have to be stopped; raise CannotFix if one cannot be controlled."""
    records = UpdateRecords(home)
    found = []
    for one in affected_homes(home, update):
        before = update.gateway if one is home else update.beside.get(str(one.path))
        contained = (
            one is home and update.before is not None and images.is_container_image(update.before)
        )
        known = before is not None and contained
        service = _service(one, update, known=known)
        if service is not None:
            ran = before is not None and service.keeps and not service.was_stopped_on_purpose()
            if ran or _is_needed(one, update) or service.restless():
                found.append(GatewayHalt(one, service, update, records, ran=ran))
    return found


def _service(home: Home, update: Update, *, known: bool) -> GatewayControl | None:
    """The gateway control of a home; raise CannotFix if it is needed and unknown."""
    try:
        return control.gateway_control(Probes(home))
    except CannotFix:
        if known or _is_needed(home, update):
            raise
        return None


def _is_needed(home: Home, update: Update) -> bool:
    """Whether a gateway runs, or was stopped by this tool."""
    return bool(Probes(home).gateways()) or str(home.path) in update.down


@contextmanager
def gateways_stopped(
    home: Home, update: Update, report_progress: Tell
) -> Iterator[Callable[[], None]]:
    """Stop the running gateways; yield a function that starts them again.

    They are also started when the block fails: the old gateway is better than none. The record
    lists what was stopped, so that the next run starts it if this process is killed.
    """
    stopped = gateways_to_stop(home, update)

    def start() -> None:
        failed = None
        for one in stopped:
            try:
                one.start(report_progress)
            except CannotFix as why:
                failed = why
        if failed is not None:
            raise failed

    try:
        for one in stopped:
            one.stop(report_progress)
        yield start
    except BaseException:
        try:
            start()
        except CannotFix as why:
            report_progress(f"could not start the gateway again: {why}")
        raise
    start()


def start_stopped(home: Home, update: Update, report_progress: Tell) -> None:
    """Start the gateways that a cut-off rollback had stopped."""
    for one in gateways_to_stop(home, update) if update.down else ():
        one.start(report_progress)
