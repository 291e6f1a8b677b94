"""A gateway in a container, seen from its host."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix
from hermes_doctor.services.commands import begin, insist
from hermes_doctor.services.owned import Owned
from hermes_doctor.services.process import Held

if TYPE_CHECKING:
    import subprocess

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
PATIENCE = 300
"""Seconds that the container gets to drain; Docker would kill it after ten."""


class Container(Owned):
    """A gateway that is a container, by its exact name or id. Compose knows it by the same."""

    def __init__(self, home: Home, name: str, engine: str | None = None) -> None:
        super().__init__(home)
        if not NAME.fullmatch(name):
            raise CannotFix("its container has a name that none can have")
        self.name = name
        self.engine = engine or "docker"
        """The command: docker, or podman."""
        self._stopping: subprocess.Popen[bytes] | None = None

    def describe(self) -> str:
        return f"its container {self.name}"

    def refuse(self) -> None:
        insist([self.engine, "inspect", "--type", "container", "--format", "{{.Id}}", self.name])

    def ask_to_stop(self, process: Held) -> None:  # noqa: ARG002 (the container is stopped)
        self._stopping = begin([self.engine, "stop", "--time", str(PATIENCE), self.name])

    def ask_to_start(self) -> None:
        if self._stopping is not None:
            insist([self.engine, "wait", self.name], limit=60)  # what still stops would not start
            self._stopping.wait()
        insist([self.engine, "start", self.name], limit=120)
