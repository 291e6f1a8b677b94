"""Control a gateway that a service manager runs: systemd, launchd, or s6 in a container."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import root_parent
from hermes_doctor.core.system.accounts import Account
from hermes_doctor.hermes.supervisors.starters import is_wrapper_of
from hermes_doctor.hermes.supervisors.units import was_stopped
from hermes_doctor.repair.gateway import process_handle
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.detached import Detached
from hermes_doctor.repair.gateway.manager_commands import (
    CommandResult,
    login_environment,
    owner_of,
    run_checked,
    run_command,
)
from hermes_doctor.repair.gateway.process_handle import ProcessHandle

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,200}\.service")
_LASTING = ("failed",)
OFTEN = 3
"""How many restarts in a row prove that no gateway will stay up."""


@dataclass(frozen=True)
class SystemdManager:
    """One systemd instance: the system's, or that of one user, reached on that user's bus."""

    user: Account | None
    """None for the system's."""

    @property
    def words(self) -> list[str]:
        """The first arguments of a command for it."""
        return ["systemctl", "--user" if self.user else "--system"]

    @property
    def runtime(self) -> Path | None:
        """The runtime folder with a user's bus; a login may have set another one than usual."""
        if self.user is None:
            return None
        own = os.environ.get("XDG_RUNTIME_DIR") if self.user.is_us else None
        return Path(own or f"/run/user/{self.user.uid}")

    def environment(self) -> dict[str, str]:
        """The variables that `systemctl` needs to reach it."""
        if self.user is None or self.runtime is None:
            return {}
        made = login_environment(self.user) | {"XDG_RUNTIME_DIR": str(self.runtime)}
        made["PATH"] = os.environ.get("PATH", made["PATH"])
        if (self.runtime / "bus").exists():
            made["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.runtime}/bus"
        return made

    def refuse(self) -> None:
        """Raise CannotFix if we cannot or may not use it."""
        if self.user is None:
            if root_parent.operator() != 0:
                raise CannotFix("The gateway is a system service. Run it with sudo.")
        elif not self.user.is_us and os.geteuid() != 0:
            raise CannotFix(
                "The service belongs to another user (uid {uid}). Run it as that user.",
                uid=self.user.uid,
            )
        elif self.runtime is not None and not any(
            (self.runtime / name).exists() for name in ("bus", "systemd/private")
        ):
            raise CannotFix(
                "systemd does not run for uid {uid} (no bus in {folder}). Log in as that user "
                "with ssh.",
                uid=self.user.uid,
                folder=self.runtime,
            )

    def run(self, *words: str, limit: float = 30.0) -> CommandResult:
        """Run a systemctl command and return its result."""
        return run_command(
            [*self.words, *words], user=self.user, env=self.environment(), limit=limit
        )

    def run_checked(self, *words: str, limit: float = 30.0) -> None:
        """Run a systemctl command that must succeed."""
        run_checked([*self.words, *words], user=self.user, env=self.environment(), limit=limit)

    def property_of(self, unit: str, name: str) -> str:
        """One property of a unit; empty if it cannot be read."""
        command_result = self.run("show", unit, f"--property={name}", "--value")
        return command_result.text if command_result.code == 0 else ""


def manager_of(home: Home, *, system: bool) -> SystemdManager:
    """The systemd instance that runs a home's unit."""
    return SystemdManager(None if system else owner_of(home))


class SystemdUnit(GatewayControl):
    """Gateway control for a systemd unit."""

    def __init__(self, home: Home, name: str, manager: SystemdManager) -> None:
        super().__init__(home)
        if not NAME.fullmatch(name):
            raise CannotFix("The name of the service is not valid. Restart it yourself.")
        self.name = name
        self.manager = manager

    def describe(self) -> str:
        whose = "user" if self.manager.user else "system"
        return f"with the systemd {whose} service {self.name}"

    def command(self, *, restart: bool) -> str:
        own = "systemctl --user" if self.manager.user else "systemctl"
        return f"{own} {'restart' if restart else 'start'} {self.name}"

    def refuse(self) -> None:
        self.manager.refuse()
        if _inside(self.name):
            raise CannotFix(
                "This runs inside {unit}, so a stop would end it, too. Run it from your own shell.",
                unit=self.name,
            )
        if self.manager.property_of(self.name, "LoadState") == "masked":
            raise CannotFix(
                "{unit} is masked, so systemd does not start it. Run `systemctl unmask` first.",
                unit=self.name,
            )

    def restless(self) -> bool:
        """Whether it waits for a restart, or its process is just starting or ending."""
        return self.manager.property_of(self.name, "ActiveState") in ("activating", "active")

    def is_restart_looping(self) -> bool:
        state = self.manager.property_of(self.name, "ActiveState")
        return state == "activating" and self._restarts() > 0

    def _restarts(self) -> int:
        """How often systemd has restarted it since the last start by a command."""
        said = self.manager.property_of(self.name, "NRestarts")
        return int(said) if said.isdecimal() else 0

    def was_stopped_on_purpose(self) -> bool:
        """Whether the unit was stopped on purpose, or is stopping now."""
        state = self.manager.property_of(self.name, "ActiveState")
        return state == "deactivating" or was_stopped(
            lambda name: self.manager.property_of(self.name, name), state
        )

    def stop(self, limit: float) -> None:
        self.note_loop()
        if self.running() is None and self.restless():  # between two starts of a loop
            self.manager.run_checked("stop", self.name, limit=limit)
        super().stop(limit)

    def ask_to_stop(self, process: ProcessHandle) -> None:
        main = self.manager.property_of(self.name, "MainPID")
        if not self.runs(main, process.pid):
            raise CannotFix(
                "Process {pid} does not belong to {unit}, whose process is {main}. Stop it "
                "yourself.",
                pid=process.pid,
                unit=self.name,
                main=main,
            )
        process_handle.announce_stop(self.home, process)
        # Do not wait: systemd's own timeout may be longer than ours for a frozen loop.
        self.manager.run_checked("stop", "--no-block", self.name)

    def runs(self, main: str, pid: int) -> bool:
        """Whether the unit's main process is this gateway or only a wrapper around it."""
        return main.isdigit() and main != "0" and is_wrapper_of(int(main), pid, self.home.path)

    def ask_to_start(self) -> None:
        self._await_the_end_of_the_stop()
        failed = self.manager.property_of(self.name, "ActiveState") == "failed"
        # A unit that was stopped between two restarts would go on counting them.
        if failed or self._restarts():
            self.manager.run_checked("reset-failed", self.name)
        self.manager.run_checked("start", "--no-block", self.name)

    def _await_the_end_of_the_stop(self) -> None:
        """Wait until the unit has finished stopping, because it cannot start before."""
        import time

        for _ in range(600):
            if self.manager.property_of(self.name, "ActiveState") != "deactivating":
                return
            time.sleep(0.1)
        raise CannotFix("{unit} does not stop. Try again later.", unit=self.name)

    def trouble(self) -> str | None:
        state = self.manager.property_of(self.name, "ActiveState")
        often = state == "activating" and self._restarts() >= OFTEN
        if state not in _LASTING and not often:
            return None
        result = self.manager.property_of(self.name, "Result")
        status = self.manager.property_of(self.name, "ExecMainStatus")
        return f"{self.name} failed ({result}, exit status {status})"


def _inside(unit: str) -> bool:
    """Whether we run in the control group of a unit: stopping it would stop us, too."""
    try:
        return any(unit in line.rstrip("\n").split("/") for line in open("/proc/self/cgroup"))
    except OSError:
        return False


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
                "The file of the launchd job {job} is missing, so it cannot be started again. "
                "Run `hermes gateway install`.",
                job=self.label,
            )
        if os.environ.get("XPC_SERVICE_NAME") == self.label:
            raise CannotFix("This runs inside {job}. Run it from your own shell.", job=self.label)

    def ask_to_stop(self, process: ProcessHandle) -> None:
        domain = self.domain  # must be looked up before bootout
        process_handle.announce_stop(self.home, process)
        run_checked(["launchctl", "bootout", f"{domain}/{self.label}"])

    def ask_to_start(self) -> None:
        target = f"{self.domain}/{self.label}"
        if run_command(["launchctl", "print", target]).code != 0:
            run_checked(["launchctl", "bootstrap", self.domain, str(self.plist)])
        run_checked(["launchctl", "kickstart", target])


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
                "You may not control the s6 service {name}. Run it as root in the container.",
                name=self.name,
            )

    def ask_to_stop(self, process: ProcessHandle) -> None:  # noqa: ARG002 (the slot is stopped)
        self._steer("-d")

    def ask_to_start(self) -> None:
        self._steer("-u")

    def _steer(self, option: str) -> None:
        """Run s6-svc, which the official container does not have on the PATH."""
        own = "/command/s6-svc"
        run_checked([own if os.access(own, os.X_OK) else "s6-svc", option, str(self.folder)])


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
