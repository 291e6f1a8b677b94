"""A gateway in a slot of s6, as the official container has one for each profile."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.gateway.base import Owned
from hermes_doctor.gateway.manager_commands import insist
from hermes_doctor.gateway.process_handle import Held
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix

SLOTS = Path("/run/service")


class Slot(Owned):
    """A gateway under s6-supervise.

    It gets no note about the stop: its own word for an announced stop is what tells the
    container at its next boot not to start it.
    """

    def __init__(self, home: Home, name: str, folder: Path | None = None) -> None:
        super().__init__(home)
        self.name = name
        self.folder = folder or SLOTS / name

    def describe(self) -> str:
        return f"its s6 slot {self.name}"

    def refuse(self) -> None:
        if not os.access(self.folder / "supervise" / "control", os.W_OK):
            raise CannotFix(f"you may not steer the slot {self.name}: run it as root there")

    def ask_to_stop(self, process: Held) -> None:  # noqa: ARG002 (the slot is stopped)
        self._steer("-d")

    def ask_to_start(self) -> None:
        self._steer("-u")

    def _steer(self, option: str) -> None:
        """The container keeps the commands of s6 off the PATH."""
        own = "/command/s6-svc"
        insist([own if os.access(own, os.X_OK) else "s6-svc", option, str(self.folder)])
