"""Stops the gateways while their Hermes is being replaced, and starts them again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hermes_doctor.backup.records.updates import Update, UpdateRecords
from hermes_doctor.core.home import Home, all_homes
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.operations.updates import images
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.planning import deleted_logs
from hermes_doctor.repair.transaction.gateway import START_LIMIT, STOP_LIMIT

Tell = Callable[[str], None]


def gateway_name(home: Home) -> str:
    """The gateway of a home, inside a sentence."""
    return f"the gateway of {home.profile}" if home.profile else "the gateway"


def affected_homes(home: Home, update: Update) -> list[Home]:
    """The home, the homes inside it, and those whose gateway runs from the same Hermes."""
    where = os.path.realpath(update.before.where) if update.before else None

    def is_meant(other: Home) -> bool:
        if other.path.is_relative_to(home.path):
            return True
        installed = Probes(other).hermes.installation()
        return installed is not None and os.path.realpath(installed.where) == where

    beside = [other_home for other_home in all_homes(home, []) if other_home.path != home.path]
    return [home, *(other for other in beside if is_meant(other))]


@dataclass
class GatewayHalt:
    """A gateway that is stopped or will be."""

    home: Home
    service: GatewayControl
    update: Update
    records: UpdateRecords
    ran: bool
    """It ran before the update, so it is to run afterwards even if it is down now.

    The update may have broken it so that its supervisor gave up.
    """

    def __post_init__(self) -> None:
        self.name = str(self.home.path)
        self.shown = gateway_name(self.home)
        self.file = self.records.origin(self.update, self.home)

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
    halts = []
    for member in affected_homes(home, update):
        before = update.gateway if member is home else update.beside.get(str(member.path))
        contained = (
            member is home
            and update.before is not None
            and images.is_container_image(update.before)
        )
        known = before is not None and contained
        try:
            service = control.gateway_control(Probes(member))
        except CannotFix:
            if known or _is_needed(member, update):
                raise
            service = None
        if service is not None:
            ran = before is not None and service.keeps and not service.was_stopped_on_purpose()
            if ran or _is_needed(member, update) or service.restless():
                halts.append(GatewayHalt(member, service, update, records, ran))
    return halts


def _is_needed(home: Home, update: Update) -> bool:
    """Whether a gateway runs, or was stopped by this tool."""
    return bool(Probes(home).gateway.running()) or str(home.path) in update.down


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
        for halt in stopped:
            try:
                halt.start(report_progress)
            except CannotFix as why:
                failed = why
        if failed is not None:
            raise failed

    try:
        for halt in stopped:
            halt.stop(report_progress)
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
    for halt in gateways_to_stop(home, update) if update.down else ():
        halt.start(report_progress)
