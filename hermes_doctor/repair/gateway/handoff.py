"""Move a gateway from a background process to a new systemd unit, or back."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.gateway.process_handle import ProcessHandle
from hermes_doctor.repair.gateway.service_managers import SystemdUnit


class Handoff(GatewayControl):
    """Gateway control that uses the unit if its file exists, and a background process if not."""

    def __init__(self, detached: Detached, unit: SystemdUnit, file: Path) -> None:
        super().__init__(detached.home)
        self.detached = detached
        self.unit = unit
        self.file = file

    def describe(self) -> str:
        there = os.path.lexists(self.file)
        return f"{self.detached.describe()}" if there else self.unit.describe()

    def refuse(self) -> None:
        self.unit.refuse()

    def ask_to_stop(self, process: ProcessHandle) -> None:
        main = self.unit.manager.property_of(self.unit.name, "MainPID")
        mine = self.unit.runs(main, process.pid)
        self.detached.origin = self.origin
        (self.unit if mine else self.detached).ask_to_stop(process)

    def ask_to_start(self) -> None:
        self._owner().ask_to_start()

    def trouble(self) -> str | None:
        return self._owner().trouble()

    def remember(self, file: Path) -> None:
        self.detached.remember(file)

    def recall(self, file: Path) -> None:
        self.detached.recall(file)

    def _owner(self) -> Detached | SystemdUnit:
        return self.unit if os.path.lexists(self.file) else self.detached
