"""Control a gateway in an s6 service slot; the official container has one per profile."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.gateway.base import GatewayControl
from hermes_doctor.gateway.manager_commands import run_checked
from hermes_doctor.gateway.process_handle import ProcessHandle
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.system import root_parent

SLOTS = Path("/run/service")


class Slot(GatewayControl):
    """Gateway control for an s6 service slot.

    It writes no planned-stop file: the state that Hermes then records would keep the container from
    starting the gateway at its next boot.
    """

    def __init__(self, home: Home, name: str, folder: Path | None = None) -> None:
        super().__init__(home)
        self.name = name
        self.folder = folder or SLOTS / name

    def describe(self) -> str:
        return f"with the s6 service {self.name}"

    def command(self, *, restart: bool) -> str:
        return f"s6-svc {'-r' if restart else '-u'} {self.folder}"

    def refuse(self) -> None:
        control = self.folder / "supervise" / "control"
        if not root_parent.is_separate() and not os.access(control, os.W_OK):
            raise CannotFix(
                text(
                    "You may not control the s6 service {name}. Run it as root in the container.",
                    name=self.name,
                )
            )

    def ask_to_stop(self, process: ProcessHandle) -> None:  # noqa: ARG002 (the slot is stopped)
        self._steer("-d")

    def ask_to_start(self) -> None:
        self._steer("-u")

    def _steer(self, option: str) -> None:
        """Run s6-svc, which the official container does not have on the PATH."""
        own = "/command/s6-svc"
        run_checked([own if os.access(own, os.X_OK) else "s6-svc", option, str(self.folder)])
