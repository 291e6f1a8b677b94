"""Control a gateway without a supervisor: signal its process, start it in the background."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import BACKGROUND_LOG, Home
from hermes_doctor.core.message import Message, text
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, limits, root_parent
from hermes_doctor.core.system.accounts import Account, refuse_untrusted
from hermes_doctor.core.system.files import MEGABYTE, read
from hermes_doctor.core.system.foreign_code import refuse_foreign_code
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.hermes.installation.find import Installation
from hermes_doctor.hermes.processes import lineage, process_stat
from hermes_doctor.repair.gateway import process_handle
from hermes_doctor.repair.gateway.base import LOOK_EVERY, GatewayControl
from hermes_doctor.repair.gateway.hermes_command import entry_command, profile_arguments
from hermes_doctor.repair.gateway.manager_commands import (
    StartedByRoot,
    login_environment,
    not_started,
    owner_of,
)
from hermes_doctor.repair.gateway.process_handle import (
    Origin,
    ProcessHandle,
    StartLock,
    read_origin,
)

LOG = BACKGROUND_LOG
QUIET = 20.0
"""Seconds within which a starting gateway has found the lock taken and ended."""
PAUSE = 60.0
"""The longest pause of a loop that starts the gateway; after that, we start it."""
_OF_ITS_OWNER = (
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LISTEN_FDS",
    "LISTEN_PID",
    "MANAGERPID",
    "NOTIFY_SOCKET",
    "SYSTEMD_EXEC_PID",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "XPC_SERVICE_NAME",
)
_STEERS = ("LD_", "PYTHON", "BASH_", "ENV", "GCONV_PATH", "IFS", "SHELLOPTS", "VIRTUAL_ENV")
"""Prefixes of variables that decide which code runs: root takes none of them from a process."""
_OF_A_SESSION = ("_HERMES_GATEWAY", "HERMES_EXEC_ASK", "HERMES_QUIET", "HERMES_SESSION_")
"""Variables that the agent gives to its tools: with these a gateway would think it is a tool."""


class Detached(GatewayControl):
    """Gateway control for a gateway without a supervisor."""

    keeps = False

    def __init__(
        self,
        home: Home,
        installation: Installation | None,
        extra_env: Mapping[str, str] | None = None,
        *,
        in_loop: bool = False,
    ) -> None:
        super().__init__(home)
        self.in_loop = in_loop
        """Whether something unknown starts it again and again, such as a loop in a shell."""
        self.owner = owner_of(home)
        """The user it runs as; read once, even if the home changes owner later."""
        self.installation = installation
        self.extra_env = dict(extra_env or {})
        """Extra variables that a unit of this home would set, mainly proxies."""
        self._process: subprocess.Popen[bytes] | StartedByRoot | None = None
        self._lock = StartLock(home)
        self._script: tuple[int, int] | None = None
        """The script that started the gateway, by process id and start time."""

    def describe(self) -> str:
        return "with the loop that starts it now" if self.in_loop else "in the background"

    def restless(self) -> bool:
        return self.probes().health.next_start() is not None

    def comes_back(self) -> bool:
        return self.in_loop or _lives(self._script)

    def refuse(self) -> None:
        self._user(None)
        self._command()

    def stop(self, limit: float) -> None:
        """Stop the gateway, and let none start until `start` or `settled`."""
        until = time.monotonic() + limit
        self._script = lineage.script_above(self.running())
        super().stop(limit)
        while not self._lock.take() and time.monotonic() < until:
            pid = self.running()
            if pid is None:  # a child of the ended gateway may hold the lock
                return
            if not self.waits(pid):  # something has started it again
                super().stop(limit)
            time.sleep(LOOK_EVERY / 20)
        quiet = time.monotonic() + limits.stretch(QUIET)
        while self._is_loading() and time.monotonic() < quiet:
            time.sleep(LOOK_EVERY / 4)

    def _is_loading(self) -> bool:
        """Whether a gateway is about to find the lock taken; it may open databases before that."""
        due = self.probes().health.next_start()
        return due is not None and due.pid is not None and due.seconds is None

    def settled(self, limit: float) -> int | None:
        self._lock.release()
        return super().settled(limit)

    def ask_to_stop(self, process: ProcessHandle) -> None:
        if self.origin is not None:
            self._user(self.origin.uid)
        process_handle.announce_stop(self.home, process)
        process.send(signal.SIGTERM)
        process.send(signal.SIGCONT)  # a suspended process must continue to drain

    def comes_by_itself(self) -> bool:
        """Wait for a loop that starts it, if there is one; then we need not do it."""
        since = self._lock.taken_at
        probes = self.probes()
        due = probes.health.next_start()
        again = since is not None and any(
            start > since for start in probes.gateway.runtime().starts
        )
        self.forget_starts()
        self._lock.release()
        until = time.monotonic() + PAUSE
        while not super().comes_by_itself():
            if time.monotonic() >= until or not (due or again or _lives(self._script)):
                return False
            time.sleep(LOOK_EVERY / 4)
        return True

    def ask_to_start(self) -> None:
        import subprocess

        user = self._user(self.origin.uid if self.origin else None)
        command = self._command()
        umask = self.origin.umask if self.origin and self.origin.umask is not None else 0o022
        options = user.options()
        folder = self.open_home_folder()
        output = None
        try:
            output = _log(self.home)
            if root_parent.is_separate():
                # A process that we start would keep our limits, such as those of sudo.
                given = (command, self.environment(user), umask)
                pid = root_parent.ask_root("start_gateway", *given, descriptors=(folder, output))
                self._process = StartedByRoot(pid)
                return
            with limits.lifted():
                name = f"/proc/self/fd/{folder}"
                self._process = subprocess.Popen(
                    command,
                    env=self.environment(user),
                    cwd=name if os.path.isdir(name) else self.home.path,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    umask=umask,
                    **options,  # type: ignore[call-overload]
                )
        except OSError as error:
            raise not_started(command[0], error) from None
        finally:
            for fd in (folder, output):
                if fd is not None:
                    os.close(fd)

    def trouble(self) -> str | None:
        if self._process is None or self._process.poll() is None:
            return None
        return f"exit code {self._process.returncode}; see {LOG}"

    def remember(self, file: Path) -> None:
        """Save how the gateway was started, with its variables, while it is stopped.

        The file is as private as .env and is removed at the end of the run.
        """
        pid = self.running()
        if pid is not None:
            disk.save(file, json.dumps(read_origin(pid)._asdict()).encode())

    def recall(self, file: Path) -> None:
        try:
            refuse_untrusted(file, self.owner)
            found: Any = json.loads(read(file, MEGABYTE)[0])
            known = Origin(tuple(found["argv"]), found["environment"], found["uid"], found["umask"])
            texts = [*known.argv, *(known.environment or {}), *(known.environment or {}).values()]
        except (OSError, CannotFix, CouldNotLook, ValueError, KeyError, TypeError, AttributeError):
            return
        numbers = all(one is None or type(one) is int for one in (known.uid, known.umask))
        if numbers and all(isinstance(text, str) for text in texts):
            self.origin = known

    def environment(self, user: Account) -> dict[str, str]:
        """The variables it had before if known, else those of a login."""
        known = self.origin.environment if self.origin else None
        made = dict(known) if known else login_environment(user) | self.extra_env
        for name in [*made]:
            steers = user.uid == 0 and name.startswith(_STEERS)
            if steers or name in _OF_ITS_OWNER or name.startswith(_OF_A_SESSION):
                del made[name]
        if user.uid == 0:
            made["PATH"] = login_environment(user)["PATH"]
        made["HERMES_HOME"] = str(self.home.path)
        return made

    def _user(self, uid: int | None) -> Account:
        """The user to run it as: the owner of the home; raise CannotFix if that does not fit."""
        owner = self.owner
        if root_parent.operator() not in (0, owner.uid):
            raise CannotFix(
                "The home belongs to another user (uid {uid}). Run it as that user or with sudo.",
                uid=owner.uid,
            )
        if uid is not None and uid != owner.uid:
            raise CannotFix(
                "The gateway runs as uid {uid}, but its home belongs to uid {owner}. Restart "
                "it yourself as the right user.",
                uid=uid,
                owner=owner.uid,
            )
        return owner

    def _command(self) -> list[str]:
        if self.installation is None:
            raise CannotFix(self._by_hand("No Hermes installation was found."))
        where = self.installation.where
        try:
            python = python_of(where, self.owner)
        except NoPython as error:
            raise CannotFix(self._by_hand(error.found)) from None
        folder = self.environment(self.owner).get("HOME")
        begin = entry_command(self.home, python, self.owner, folder)
        return [*begin, *profile_arguments(self.home, folder), "gateway", "run"]

    def _by_hand(self, obstacle: str) -> Message:
        """Why the gateway cannot be started from here, and what the operator does instead."""
        if self.running() is None:
            return text(
                "{obstacle} Start the gateway the way you usually do, such as `hermes gateway "
                "run`.",
                obstacle=obstacle,
            )
        return text(
            "{obstacle} Restart the gateway the way you usually do, such as `hermes gateway "
            "restart`.",
            obstacle=obstacle,
        )


def _lives(process: tuple[int, int] | None) -> bool:
    seen = process_stat.stat(process[0]) if process else None
    return seen is not None and seen.doing != "Z" and (process or (0, 0))[1] == seen.start_time


class NoPython(CannotFix):
    """A folder contains no interpreter, or none that this process can run."""

    def __init__(self, found: Message) -> None:
        super().__init__(text("{found} Install Hermes again.", found=found))
        self.found = found


def python_of(environment: Path, user: Account) -> Path:
    """The interpreter of a virtual environment or checkout, if the user may trust it."""
    message = text("{folder} contains no Python for Hermes.", folder=environment)
    for folder in (environment, environment / "venv", environment / ".venv"):
        for name in ("bin/python", "bin/python3", "Scripts/python.exe"):
            if os.access(folder / name, os.X_OK):
                packages = folder.glob("lib*/python*/site-packages")
                for place in (environment, folder / name, *packages):
                    refuse_untrusted(place, user)
                refuse_foreign_code(folder / name, user)
                return folder / name
            if os.path.lexists(folder / name):
                message = text("{file} cannot be run by this user.", file=folder / name)
    raise NoPython(message)


def _log(home: Home) -> int:
    """Open the background log with the privileges of the home's owner."""
    path = home / LOG
    disk.make_folder(path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY
    try:
        with as_owner_of(path) as here:
            return os.open(here, flags, disk.FILE_MODE)
    except OSError as error:
        raise CannotFix(
            "Could not write {file}: {reason}. Correct its permissions first.",
            file=LOG,
            reason=os.strerror(error.errno or 0).lower(),
        ) from None
