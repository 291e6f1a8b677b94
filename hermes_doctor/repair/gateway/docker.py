"""Control a gateway in a Docker or Podman container from its host."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.hermes.processes import lineage
from hermes_doctor.hermes.processes.lineage import control_group_of
from hermes_doctor.hermes.supervisors import docker
from hermes_doctor.hermes.supervisors.units import Unit
from hermes_doctor.repair.gateway.base import GatewayControl
from hermes_doctor.repair.gateway.manager_commands import (
    LIMIT,
    StartedByRoot,
    run_checked,
    run_command,
    start_command,
)
from hermes_doctor.repair.gateway.process_handle import ProcessHandle

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
PATIENCE = 300
"""Seconds that the container gets to drain; Docker would kill it after ten."""

WAITING = 1
"""The same for a gateway that does not work yet."""
_ENDED = "{{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}"
OFTEN = 5
"""How many restarts in a row prove that no gateway will stay up."""


class Container(GatewayControl):
    """Gateway control for a container, by its exact name or id."""

    def __init__(self, home: Home, name: str, engine: str | None = None) -> None:
        super().__init__(home)
        if not NAME.fullmatch(name):
            raise CannotFix(
                "The name of the container is not valid. Restart the container yourself."
            )
        self.name = name
        self.engine = engine or "docker"
        """The command: docker, or podman."""
        self._stopping: subprocess.Popen[bytes] | StartedByRoot | None = None

    def describe(self) -> str:
        return f"in the container {self.name}"

    def command(self, *, restart: bool) -> str:
        return f"{self.engine} {'restart' if restart else 'start'} {self.name}"

    def refuse(self) -> None:
        self._insist("inspect", "--type", "container", "--format", "{{.Id}}", self.name)

    def restless(self) -> bool:
        """Whether the container runs: its first process starts a gateway sooner or later."""
        return self._tell("{{.State.Status}}") in ("running", "restarting")

    def was_stopped_on_purpose(self) -> bool:
        """Whether the container was stopped; also if Docker no longer knows how it ended."""
        try:
            unit = docker.inspect(self.engine, self.name, self.home.path, docker.PATIENCE)
        except CouldNotLook:
            return False
        return unit is not None and unit.settings["Stopped"] != "no"

    def also_stops(self, pid: int) -> bool:
        container = control_group_of(pid).container
        return container is not None and container == self._tell("{{.Id}}")

    def is_restart_looping(self) -> bool:
        status, _, starts = self._ended()
        return status in ("running", "restarting") and starts >= OFTEN

    def trouble(self) -> str | None:
        status, code, starts = self._ended()
        ended = f"container {self.name} ended with {code}"
        if status == "restarting" and starts >= OFTEN:
            return f"{ended} again and again"
        return ended if status in ("exited", "dead") else None

    def _ended(self) -> tuple[str, str, int]:
        """Its status, its last exit code, and how often it was restarted."""
        status, _, rest = self._tell(_ENDED).partition(" ")
        code, _, starts = rest.partition(" ")
        return status, code, int(starts) if starts.isdecimal() else 0

    def stop(self, limit: float) -> None:
        self.note_loop()
        if self.running() is None and self.restless():
            limit = max(limit, PATIENCE + 60)  # the engine kills it by then
            self._insist("stop", "--time", str(PATIENCE), self.name, limit=limit)
        super().stop(limit)

    def ask_to_stop(self, process: ProcessHandle) -> None:
        # A gateway that waits has nothing to drain, and as the first process it ignores SIGTERM.
        patience = WAITING if self.waits(process.pid) else PATIENCE
        self._stopping = start_command([self.engine, "stop", "--time", str(patience), self.name])

    def ask_to_start(self) -> None:
        import subprocess

        # Find the container's new name if Compose recreated it under another one.
        unit = None if self._tell("{{.Id}}") else container_of(self.home)
        if unit is not None and NAME.fullmatch(unit.name):
            self.name = unit.name
        if self._stopping is not None:
            with contextlib.suppress(CannotFix):  # a removed container need not stop
                self._insist("wait", self.name, limit=60)  # a stopping container would not start
            with contextlib.suppress(subprocess.TimeoutExpired):  # then it does not start, either
                self._stopping.wait(60)
        self._insist("start", self.name, limit=120)

    def _tell(self, what: str) -> str:
        """One value from the engine's `inspect`; empty if it fails."""
        words = ("inspect", "--type", "container", "--format", what, self.name)
        command_result = run_command([self.engine, *words], env=os.environ)
        return command_result.text if command_result.code == 0 else ""

    def _insist(self, *words: str, limit: float = LIMIT) -> None:
        """Run an engine command with the variables of this shell, which select the engine."""
        run_checked([self.engine, *words], env=os.environ, limit=limit)


def container_of(home: Home) -> Unit | None:
    """The container of a stopped gateway, or None.

    A container may leave no trace in its home, and a gateway started on the host instead would be
    a different Hermes. Called only before a start, because the engine is slow.
    """
    engine = None if lineage.in_container() else docker.engine()
    try:
        ids = docker.all_of_home(engine, home, docker.PATIENCE) if engine else None
        return docker.only_container(engine, ids, home) if engine and ids else None
    except CouldNotLook as why:
        raise CannotFix(
            "Could not find out what restarts the gateway: {reason}. Restart it yourself.",
            reason=why,
        ) from None
