"""A gateway on its way under a supervisor, or out of it again."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.gateway.base import Owned
from hermes_doctor.gateway.detached import Detached
from hermes_doctor.gateway.process_handle import Held
from hermes_doctor.gateway.systemd import SystemdUnit


class Moving(Owned):
    """The unit runs it as soon as it is there, and a process of its own as long as it is not."""

    def __init__(self, alone: Detached, unit: SystemdUnit, file: Path) -> None:
        super().__init__(alone.home)
        self.alone = alone
        self.unit = unit
        self.file = file

    def describe(self) -> str:
        there = os.path.lexists(self.file)
        return f"{self.alone.describe()}" if there else self.unit.describe()

    def refuse(self) -> None:
        self.unit.refuse()

    def ask_to_stop(self, process: Held) -> None:
        main = self.unit.manager.tell(self.unit.name, "MainPID")
        mine = self.unit.runs(main, process.pid)
        self.alone.origin = self.origin
        (self.unit if mine else self.alone).ask_to_stop(process)

    def ask_to_start(self) -> None:
        self._owner().ask_to_start()

    def trouble(self) -> str | None:
        return self._owner().trouble()

    def remember(self, file: Path) -> None:
        self.alone.remember(file)

    def recall(self, file: Path) -> None:
        self.alone.recall(file)

    def _owner(self) -> Detached | SystemdUnit:
        return self.unit if os.path.lexists(self.file) else self.alone
