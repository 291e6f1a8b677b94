"""Machine actions: let Docker or a line of the crontab restart the gateway."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hermes_doctor.core.home import Home, state_folder
from hermes_doctor.core.message import text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import digests, root_parent
from hermes_doctor.diagnosis.step import MachineAction
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.starters import heals
from hermes_doctor.hermes.supervisors.units import Unit
from hermes_doctor.repair.gateway.docker import NAME, container_of
from hermes_doctor.repair.gateway.manager_commands import owner_of, run_checked
from hermes_doctor.repair.schedule.jobs import Job
from hermes_doctor.repair.schedule.managers import Cron, lines_of, remove_line

POLICY, BEFORE = "unless-stopped", "no"


@dataclass(frozen=True)
class SetRestartPolicy(MachineAction):
    """Machine action: change the restart policy of the home's container from `no`.

    The receipt does not name the container: it is the one that has the home as a volume.
    """

    home: Home
    name: str = ""
    """The name of the container for the plan; empty if the action comes from a receipt."""
    kind: ClassVar[str] = "set-restart-policy"
    lasting: ClassVar[bool] = True

    def sentence(self) -> str:
        return text(
            "let Docker restart the container: docker update --restart {policy} {name}",
            policy=POLICY,
            name=self.name or self._container().name,
        )

    def refuse(self) -> None:
        self._container()

    def do(self) -> None:
        self._set(BEFORE, POLICY)

    def revert(self) -> None:
        self._set(POLICY, BEFORE)

    def _set(self, old: str, new: str) -> None:
        """Change the policy, unless somebody has set another one meanwhile."""
        unit = self._container()
        if unit.settings.get("Restart") == old:
            run_checked(["docker", "update", "--restart", new, unit.name], env=os.environ)

    def _container(self) -> Unit:
        if docker.engine() != "docker":
            raise CannotFix(
                "Only Docker can change the restart policy of a container. Recreate it "
                "with `--restart {policy}`.",
                policy=POLICY,
            )
        unit = container_of(self.home)
        if unit is None or not NAME.fullmatch(unit.name):
            raise CannotFix("Docker has no container with this home. Set its policy yourself.")
        return unit


_CODE = re.compile(r"[A-Z][A-Z0-9-]*")
_DIGEST = re.compile(r"[0-9a-f]{64}|")


@dataclass(frozen=True)
class InstallCrontabLine(MachineAction):
    """Machine action: add a line to the crontab that runs `watch --heal` every minute."""

    home: Home
    agreed: str
    """The code that the watch may repair although its fix may ask: the gateway does not run."""
    added: str = ""
    """The digest of the added line, from a receipt; empty for the line that we would add now."""
    kind: ClassVar[str] = "install-crontab-line"
    lasting: ClassVar[bool] = True

    @staticmethod
    def is_valid(agreed: str, added: str) -> bool:
        """Whether words from a receipt can be the code of a problem, and a digest or nothing."""
        return bool(_CODE.fullmatch(agreed) and _DIGEST.fullmatch(added))

    @property
    def job(self) -> Job:
        """The watch that cron starts every minute; it repairs what two checks in a row found."""
        options = ("--heal", "--after", "2", "--also", self.agreed)
        return Job(self.home, options, heal=True, interval=60.0, folder=state_folder())

    def words(self) -> dict[str, str]:
        return {"agreed": self.agreed, "line": self.added or _digest(Cron().text(self.job))}

    def sentence(self) -> str:
        return (
            "add a line to your crontab that checks every minute, starts the gateway again and "
            "makes safe repairs; variables of your shell no longer apply then"
        )

    def lines(self) -> Sequence[str]:
        return ["+" + Cron().text(self.job).rstrip("\n")]

    def refuse(self) -> None:
        self.refuse_revert()
        there = lines_of(self.job)
        if any(heals(line, self.home) for line in there):
            raise CannotFix(
                "Your crontab has a line that starts the gateway again already. Nothing to do."
            )
        if there:
            raise CannotFix(
                "Your crontab has a watch of this home that does not repair. Run `hermes-doctor "
                "watch install --cron --heal` instead, which replaces that line."
            )

    def refuse_revert(self) -> None:
        owner = owner_of(self.home)
        if root_parent.operator() != owner.uid:
            raise CannotFix(
                "The crontab of {user} must start the gateway. Run this command as {user}.",
                user=owner.name or f"uid {owner.uid}",
            )

    def do(self) -> None:
        if not lines_of(self.job):
            Cron().install(self.job)

    def revert(self) -> None:
        """Remove the line, unless a person has changed it since."""
        for line in lines_of(self.job):
            if self._is_added(line):
                remove_line(line)

    def notes_of_revert(self) -> Sequence[str]:
        try:
            changed = [line for line in lines_of(self.job) if not self._is_added(line)]
        except CannotFix:  # then the revert fails, too, and says why
            return ()
        if not changed:
            return ()
        return [
            text(
                "The line of your crontab was changed, so it stays. To remove it, run `crontab -e` "
                "and delete the line that ends with # {name}.",
                name=self.job.name,
            )
        ]

    def _is_added(self, line: str) -> bool:
        return _digest(line) == self.words()["line"]


def _digest(line: str) -> str:
    return digests.sha256(line.encode("utf-8", "surrogateescape")).hexdigest()
