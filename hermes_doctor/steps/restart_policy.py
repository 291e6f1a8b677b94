"""Machine action: let Docker restart the container of the gateway."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

from hermes_doctor.gateway.docker import NAME, container_of
from hermes_doctor.gateway.manager_commands import run_checked
from hermes_doctor.home import Home
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.steps.base import MachineAction
from hermes_doctor.supervisors import docker
from hermes_doctor.supervisors.unit import Unit

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
        found = self._container()
        if found.settings.get("Restart") == old:
            run_checked(["docker", "update", "--restart", new, found.name], env=os.environ)

    def _container(self) -> Unit:
        if docker.engine() != "docker":
            raise CannotFix(
                text(
                    "Only Docker can change the restart policy of a container. Recreate it "
                    "with `--restart {policy}`.",
                    policy=POLICY,
                )
            )
        found = container_of(self.home)
        if found is None or not NAME.fullmatch(found.name):
            raise CannotFix("Docker has no container with this home. Set its policy yourself.")
        return found
