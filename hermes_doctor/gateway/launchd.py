"""Control a gateway that launchd runs on macOS."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.gateway import planned_stop
from hermes_doctor.gateway.base import GatewayControl
from hermes_doctor.gateway.manager_commands import owner_of, run_checked, run_command
from hermes_doctor.gateway.process_handle import ProcessHandle
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix


class LaunchAgent(GatewayControl):
    """Gateway control for a launch agent.

    With KeepAlive launchd restarts the gateway unless the agent is booted out.
    """

    def __init__(self, home: Home, label: str, plist: Path | None, domain: str | None) -> None:
        super().__init__(home)
        self.label = label
        self.plist = plist
        self._domain = domain

    def describe(self) -> str:
        return f"with the launchd job {self.label}"

    @property
    def domain(self) -> str:
        """The launchd domain it is loaded in: the desktop session (gui) first, else user."""
        if self._domain is None:
            uid = owner_of(self.home).uid
            gui = f"gui/{uid}"
            known = run_command(["launchctl", "print", f"{gui}/{self.label}"]).code == 0
            user = run_command(["launchctl", "print", f"user/{uid}/{self.label}"]).code == 0
            self._domain = f"user/{uid}" if user and not known else gui
        return self._domain

    def refuse(self) -> None:
        if self.plist is None:
            raise CannotFix(
                text(
                    "The file of the launchd job {job} is missing, so it cannot be started again. "
                    "Run `hermes gateway install`.",
                    job=self.label,
                )
            )
        if os.environ.get("XPC_SERVICE_NAME") == self.label:
            raise CannotFix(
                text("This runs inside {job}. Run it from your own shell.", job=self.label)
            )

    def ask_to_stop(self, process: ProcessHandle) -> None:
        domain = self.domain  # must be looked up before bootout
        planned_stop.announce(self.home, process)
        run_checked(["launchctl", "bootout", f"{domain}/{self.label}"])

    def ask_to_start(self) -> None:
        target = f"{self.domain}/{self.label}"
        if run_command(["launchctl", "print", target]).code != 0:
            run_checked(["launchctl", "bootstrap", self.domain, str(self.plist)])
        run_checked(["launchctl", "kickstart", target])
