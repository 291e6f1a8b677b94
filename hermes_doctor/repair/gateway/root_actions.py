"""What root does for a process that repairs another user's home, besides what a look needs.

This page is the whole list. Root does something only to a service or a container that it has found
itself to be of this home, to a process that is a gateway of this home, to a file in a folder of the
home's owner, and to the record of root's own last question. It opens a file of the home's owner
that a process has open. A gateway and other programs of the owner, such as pip, are started as the
home's owner, so it does not matter which commands these are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.backup.records import last_ask
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import limits, open_files, privileges
from hermes_doctor.core.system.accounts import account
from hermes_doctor.core.system.separate_process import Action, OpenFile
from hermes_doctor.diagnosis.probes.root_actions import Containers, folder_of
from hermes_doctor.hermes.processes import gateway_processes, lineage
from hermes_doctor.hermes.supervisors import s6, systemd
from hermes_doctor.hermes.supervisors.systemd import system_scope
from hermes_doctor.repair.gateway import manager_commands
from hermes_doctor.repair.gateway.process_handle import open_process

_UNIT = r"(?P<unit>[A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,200}\.service)"
_CONTAINER = r"(?P<container>[A-Za-z0-9][A-Za-z0-9_.-]{0,127})"
_COMMANDS = {
    "systemctl": (
        r"--system daemon-reload",
        r"--system show [A-Za-z0-9][A-Za-z0-9:_.@\\-]{0,200} --property=\w+ --value",
        rf"--system (stop|start)( --no-block)? {_UNIT}",
        rf"--system (reset-failed|enable|disable) {_UNIT}",
    ),
    "loginctl": (r"(enable|disable)-linger (?P<user>\S+)",),
    "docker": (
        rf"inspect --type container --format [^\0]* {_CONTAINER}",
        rf"(stop --time \d+|start|wait|update --restart (unless-stopped|no)) {_CONTAINER}",
    ),
    "s6-svc": (r"-[du] (?P<slot>/run/service/gateway-[\w.-]+)",),
}
_COMMANDS |= {"podman": _COMMANDS["docker"], "/command/s6-svc": _COMMANDS["s6-svc"]}
"""The programs that root runs, and the words that may follow."""
_running: list[subprocess.Popen[bytes]] = []
"""What was started for earlier repairs of a watch; its exit code is read once it has ended."""
_SIGNALS = (signal.SIGTERM, signal.SIGCONT, signal.SIGKILL)


def actions(home: Path, owner: int) -> Mapping[str, Action]:
    """The actions for a process of this user that repairs this home."""
    root = _Root(home, owner)
    return {
        "run": root.run,
        "begin": root.begin,
        "start_gateway": root.start_gateway,
        "run_as_owner": root.run_as_owner,
        "exit_code": root.exit_code,
        "signal_gateway": root.signal_gateway,
        "give": lambda *given, descriptors: privileges.give_as_root(owner, *given, *descriptors),
        "had_owner": lambda *given, descriptors: privileges.had_owner_by_mark(*given, *descriptors),
        "open_of_process": lambda pid, fd: OpenFile(
            open_files.open_for_owner(owner, int(pid), int(fd))
        ),
        "keep_last_ask": lambda document: _keep_last_ask(Home(home), str(document)),
    }


def _keep_last_ask(home: Home, document: str) -> str | None:
    """Keep the result of a question in root's own record."""
    record = last_ask.parse(json.loads(document), home)
    return last_ask.save(home, record) if record else "it is not valid"


class _Root:
    """Root's part of the work in one home."""

    def __init__(self, home: Path, owner: int) -> None:
        self.home = home
        folder = folder_of(home, owner)
        if folder is None:
            raise CouldNotLook("another program replaced the folder of the home")
        self._identity = folder.identity
        self._owner = account(owner)
        self._containers = Containers(home, owner)
        self._units: set[str] = set()
        """The services that root has found to be of this home."""
        self._begun: dict[int, subprocess.Popen[bytes]] = {}
        _running[:] = [process for process in _running if process.poll() is None]

    def run(self, words: Sequence[str], limit: float) -> list[object]:
        """Run a command of a supervisor to its end; return its exit code and last line."""
        command = self._allowed([*map(str, words)])
        if command is None:
            return [1, "no such container"]
        env = os.environ if command[0] in ("docker", "podman") else None
        return [*manager_commands.run_command(command, env=env, limit=float(limit))]

    def run_as_owner(
        self,
        words: Sequence[str],
        env: Mapping[str, str],
        limit: float,
        folder: str,
        *,
        descriptors: Sequence[int] = (),
    ) -> list[object]:
        """Run a command as the home's owner, in root's own mounts and without root's variables."""
        done = manager_commands.run_command(
            [*map(str, words)],
            user=self._owner,
            env={str(name): str(value) for name, value in env.items()},
            limit=float(limit),
            cwd=Path(folder),
            pass_fds=descriptors,
        )
        return [*done]

    def begin(self, words: Sequence[str]) -> int:
        """Start such a command without waiting for its end."""
        command = self._allowed([*map(str, words)])
        if command is None:
            raise CannotFix("The container does not exist.")
        process = manager_commands.start_command(command)
        assert isinstance(process, subprocess.Popen)
        return self._note(process)

    def start_gateway(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        umask: int,
        *,
        descriptors: tuple[int, int],
    ) -> int:
        """Start a command as the home's owner; the open files are its folder and its output."""
        folder, output = descriptors
        try:
            with limits.lifted():
                process = subprocess.Popen(
                    [*map(str, command)],
                    env={str(name): str(value) for name, value in env.items()},
                    cwd=f"/proc/self/fd/{folder}",
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    umask=int(umask) & 0o777,
                    user=self._owner.uid,
                    group=self._owner.gid,
                    extra_groups=self._owner.groups,
                )
        except OSError as error:
            raise manager_commands.not_started(str(command[0]), error) from None
        return self._note(process)

    def exit_code(self, pid: int, limit: float = 0.0) -> int | None:
        """The exit code of what root has started; None if it still runs."""
        process = self._begun[int(pid)]
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(float(limit), 60.0))
        return None

    def signal_gateway(self, pid: int, start: int, number: int) -> None:
        """Send a signal to a gateway of this home that runs as another user."""
        if number not in _SIGNALS or pid not in self._gateways():
            raise CannotFix("Process {pid} is not a gateway of this home.", pid=pid)
        with contextlib.suppress(ProcessLookupError), open_process(int(pid)) as process:
            if process.ticks == start:
                process.send(number)

    def _note(self, process: subprocess.Popen[bytes]) -> int:
        self._begun[process.pid] = process
        _running.append(process)
        return process.pid

    def _allowed(self, words: list[str]) -> list[str] | None:
        """The command as root runs it; None for a container that does not exist."""
        said = "\0".join(words[1:])  # so that a word with spaces is one word
        forms = (form.replace(" ", "\0") for form in _COMMANDS.get(words[0], ()))
        match = next(filter(None, (re.fullmatch(form, said) for form in forms)), None)
        if match is None:
            raise CannotFix("root does not run {program} like this.", program=words[0])
        named = match.groupdict()
        if (unit := named.get("unit")) and not self._is_unit(unit):
            raise _not_of_home(unit)
        if (user := named.get("user")) and user != self._owner.name:
            raise _not_of_home(user)
        if (slot := named.get("slot")) and slot not in [
            str(unit.path.parent) for unit in s6.slots() if unit.home == self.home and unit.path
        ]:
            raise _not_of_home(slot)
        if container := named.get("container"):
            id = self._id_of(words[0], container)
            if not id:
                return None
            self._containers.find()  # Compose may have made a new one
            self._containers.refuse_others([id])
            words = [*words[:-1], id]
        return words

    def _id_of(self, engine: str, container: str) -> str:
        words = [engine, "inspect", "--type", "container", "--format", "{{.Id}}", container]
        command_result = manager_commands.run_command(words, env=os.environ)
        return command_result.text if command_result.code == 0 else ""

    def _is_unit(self, name: str) -> bool:
        """Whether a service names this home in root's files, or runs its gateway."""
        if name not in self._units:
            defined = systemd.definitions(system_scope())
            self._units |= {unit.name for unit in defined if unit.home == self.home}
            self._units |= set(filter(None, map(self._unit_of, self._gateways())))
        return name in self._units

    def _unit_of(self, pid: int) -> str | None:
        """The system service of a gateway if its main process is the gateway or the owner's."""
        group = lineage.control_group_of(pid)
        if group.unit is None or group.manager is not None or group.container is not None:
            return None
        words = ["systemctl", "--system", "show", group.unit, "--property=MainPID", "--value"]
        main = manager_commands.run_command(words).text
        with contextlib.suppress(OSError):
            if main == str(pid) or os.stat(f"/proc/{main}").st_uid == self._owner.uid:
                return group.unit
        return None

    def _gateways(self) -> list[int]:
        """The gateways of this home; the kernel says which home each one uses."""
        found = []
        for candidate in gateway_processes.candidates():
            with contextlib.suppress(OSError):
                st = os.stat(candidate.claim.home) if candidate.claim else None
                if st and (st.st_dev, st.st_ino) == self._identity:
                    found.append(candidate.gateway.pid)
        return found


def _not_of_home(name: str) -> CannotFix:
    return CannotFix("root has not found {name} to be of this home.", name=name)
