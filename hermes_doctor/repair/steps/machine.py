"""The machine actions that a fix can plan, and how they are created again from a receipt.

The home's owner can write the receipt. So it never names a user or a path: an action is always
done for the owner of the home, and a unit must have a name that begins with `hermes`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hermes_doctor.backup.records.journal import MachineActionRecord
from hermes_doctor.core.home import Home
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import MachineAction
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.processes.home_of import is_same_folder
from hermes_doctor.hermes.supervisors.systemd import definitions, user_scope
from hermes_doctor.repair.gateway.detached import python_of
from hermes_doctor.repair.gateway.hermes_command import profile_arguments, refuse_other_profile
from hermes_doctor.repair.gateway.manager_commands import owner_of, run_checked, run_command
from hermes_doctor.repair.gateway.service_managers import SystemdManager, manager_of
from hermes_doctor.repair.steps.restart_actions import InstallCrontabLine, SetRestartPolicy

OLDEST_INSTALLER = (0, 18)
"""The first release whose installer works without a terminal."""
_BACK = "take-back"
NO_ACCOUNT = "The owner of the home has no account on this machine. Correct the owner first."
_UNIT = "The service that Hermes installs"
_OURS = re.compile(r"hermes[A-Za-z0-9_.@-]*\.service")


@dataclass(frozen=True)
class SystemdAction(MachineAction):
    """Machine action: run one command of systemctl, with a unit of the home or for all units."""

    home: Home
    unit: str = ""
    system: bool = False

    @property
    def manager(self) -> SystemdManager:
        """The systemd instance that runs this home's unit."""
        return manager_of(self.home, system=self.system)

    @property
    def command(self) -> str:
        """The first words of the command, for people."""
        return " ".join(self.manager.words)

    def words(self) -> dict[str, str]:
        scope = {"scope": "system" if self.system else "user"}
        return scope | {"unit": self.unit} if self.unit else scope

    def refuse(self) -> None:
        self.manager.refuse()


@dataclass(frozen=True)
class ReloadUnits(SystemdAction):
    """Machine action: make systemd reload its units and drop-ins."""

    kind: ClassVar[str] = "reload-units"

    def sentence(self) -> str:
        return text("reload the settings of systemd: {command} daemon-reload", command=self.command)

    def do(self) -> None:
        self.manager.run_checked("daemon-reload")

    def revert(self) -> None:
        self.do()


@dataclass(frozen=True)
class ResetFailed(SystemdAction):
    """Machine action: reset the failed state of a systemd unit, so it can be started."""

    kind: ClassVar[str] = "reset-failed-unit"

    def sentence(self) -> str:
        template = "let systemd start it again: {command} reset-failed {unit}"
        return text(template, command=self.command, unit=self.unit)

    def do(self) -> None:
        self.manager.run_checked("reset-failed", self.unit)


@dataclass(frozen=True)
class EnableUnit(SystemdAction):
    """Machine action: let systemd start a unit with the machine, or with the user's systemd."""

    kind: ClassVar[str] = "enable-unit"
    lasting: ClassVar[bool] = True

    def sentence(self) -> str:
        template = "start it with the machine: {command} enable {unit}"
        return text(template, command=self.command, unit=self.unit)

    def refuse(self) -> None:
        super().refuse()
        if not _OURS.fullmatch(self.unit):
            raise CannotFix(
                "The name of {unit} does not begin with hermes. Enable it yourself: {command} "
                "enable {unit}",
                unit=self.unit,
                command=self.command,
            )

    def do(self) -> None:
        self.manager.run_checked("enable", self.unit)

    def revert(self) -> None:
        self.manager.run_checked("disable", self.unit)


@dataclass(frozen=True)
class EnableLinger(MachineAction):
    """Machine action: let the services of the home's owner run on after logout (lingering)."""

    home: Home
    kind: ClassVar[str] = "enable-lingering"
    lasting: ClassVar[bool] = True

    def sentence(self) -> str:
        return text(
            "let services run without a login: loginctl enable-linger {user}", user=self._name()
        )

    def refuse(self) -> None:
        self._name()

    def do(self) -> None:
        run_checked(["loginctl", "enable-linger", self._name()])

    def revert(self) -> None:
        run_checked(["loginctl", "disable-linger", self._name()])

    def _name(self) -> str:
        name = owner_of(self.home).name
        if name is None:
            raise CannotFix(NO_ACCOUNT)
        return name


@dataclass(frozen=True)
class InstallService(MachineAction):
    """Machine action: install a systemd user unit for this home with Hermes' own installer."""

    home: Home
    unit: str
    kind: ClassVar[str] = "install-unit"
    lasting: ClassVar[bool] = True

    @property
    def manager(self) -> SystemdManager:
        """The systemd user instance of the home's owner."""
        return manager_of(self.home, system=False)

    @property
    def path(self) -> Path:
        scope = user_scope(owner_of(self.home).uid)
        if scope is None:
            raise CannotFix(NO_ACCOUNT)
        return scope.folders[0] / self.unit

    def words(self) -> dict[str, str]:
        return {"unit": self.unit}

    def sentence(self) -> str:
        return text("install {unit} with Hermes: hermes gateway install", unit=self.unit)

    def refuse(self) -> None:
        self.manager.refuse()
        if self.path.parent.is_relative_to(self.home.path):
            raise CannotFix(
                "The services of this user are inside the home. Install the service yourself."
            )

    def do(self) -> None:
        if snapshot(self.path).kind != "absent":
            return
        installation = self.require_installer()
        owner = owner_of(self.home)
        refuse_other_profile(self.home, owner.folder, _UNIT)
        python = str(python_of(installation.where, owner))
        words = profile_arguments(self.home, owner.folder)
        before = self._units()
        command_result = run_command(
            [
                *(python, "-m", "hermes_cli.main", *words, "gateway", "install"),
                *("--no-start-now", "--start-on-login"),
            ],
            user=owner,
            env=SystemdManager(owner).environment() | {"HERMES_HOME": str(self.home.path)},
            limit=120,
            cwd=self.home.path,
        )
        made = {name: home for name, home in self._units().items() if name not in before}
        mine = made.get(self.unit)
        if mine is None or not is_same_folder(mine, self.home.path):
            for name in made:
                self._remove(name)
            template = (
                "Hermes installed a service for another home: {reason}. Install it yourself."
                if mine
                else "Hermes did not install {unit}: {reason}. Install it yourself."
            )
            raise CannotFix(
                template, unit=self.unit, reason=command_result.text or command_result.code
            )

    def revert(self) -> None:
        self._remove(self.unit)

    def require_installer(self) -> Installation:
        """The installed Hermes; raise CannotFix if it cannot install a service by itself."""
        installation = Probes(self.home).hermes.installation()
        if installation is None:
            raise CannotFix(
                "No Hermes installation was found, so no service can be installed. Install Hermes "
                "first."
            )
        if installation.release < OLDEST_INSTALLER:
            raise CannotFix(
                "The installer of Hermes {version} asks questions. Run `hermes gateway "
                "install` yourself.",
                version=installation.version,
            )
        return installation

    def _units(self) -> dict[str, Path | None]:
        """The gateway units in the same folder, and their homes."""
        scope = user_scope(owner_of(self.home).uid)
        units = definitions(scope) if scope else []
        return {unit.name: unit.home for unit in units if unit.path == self.path.parent / unit.name}

    def _remove(self, name: str) -> None:
        path = self.path.parent / name
        if snapshot(path).kind == "file":
            self.manager.run_checked("disable", name)
            disk.remove(path)
            self.manager.run_checked("daemon-reload")


@dataclass(frozen=True)
class RevertAction(MachineAction):
    """Machine action that reverts another one, for `undo`; reverting it repeats the other."""

    action: MachineAction
    kind: ClassVar[str] = _BACK
    lasting: ClassVar[bool] = True

    def words(self) -> dict[str, str]:
        return {**self.action.words(), "of": self.action.kind}

    def sentence(self) -> str:
        return text("undo: {step}", step=self.action.sentence())

    def refuse(self) -> None:
        self.action.refuse_revert()

    def notes(self) -> Sequence[str]:
        return self.action.notes_of_revert()

    def do(self) -> None:
        self.action.revert()

    def revert(self) -> None:
        self.action.do()


def action_from_record(home: Home, record: MachineActionRecord) -> MachineAction | None:
    """Create the machine action that a receipt records; None if its kind or unit is unknown."""
    if record.kind == _BACK:
        words = {key: word for key, word in record.words.items() if key != "of"}
        act = action_from_record(home, MachineActionRecord(record.words.get("of", ""), words))
        return RevertAction(act) if act and not isinstance(act, RevertAction) else None
    system = record.words.get("scope") == "system"
    unit = record.words.get("unit", "")
    of_unit = {ResetFailed.kind: ResetFailed, EnableUnit.kind: EnableUnit}.get(record.kind)
    if record.kind == ReloadUnits.kind:
        return ReloadUnits(home, system=system)
    if of_unit and _OURS.fullmatch(unit):
        return of_unit(home, unit, system)
    if record.kind == EnableLinger.kind:
        return EnableLinger(home)
    if record.kind == InstallService.kind and _OURS.fullmatch(unit):
        return InstallService(home, unit)
    if record.kind == SetRestartPolicy.kind:
        return SetRestartPolicy(home)
    if record.kind == InstallCrontabLine.kind:
        agreed, added = record.words.get("agreed", ""), record.words.get("line", "")
        valid = InstallCrontabLine.is_valid(agreed, added)
        return InstallCrontabLine(home, agreed, added) if valid else None
    return None
