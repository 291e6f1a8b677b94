"""Run commands of a supervisor (such as systemctl) as the right user with a time limit."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import duration
from hermes_doctor.core.model import CannotFix, Trouble
from hermes_doctor.core.redaction import clean
from hermes_doctor.core.system import limits, privileges, root_parent
from hermes_doctor.core.system.accounts import Account, account, refuse_untrusted, shared_folder

BY_ROOT = ("systemctl", "loginctl", "docker", "podman", "s6-svc", "/command/s6-svc")
"""Programs that a separate process lets root run, because they need its rights."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMIT = 30.0


def owner_of(home: Home) -> Account:
    """The user who owns a home.

    Root runs programs as that user, so nobody else may control its content: no other user may own
    a folder or symlink on the path, and neither the home nor a folder above may be shared.
    """
    try:
        st = os.stat(home.path)
        if os.geteuid() == 0:
            whose = privileges.of(home / "any")
            led = privileges.of(home.named / "any") if home.named and st.st_uid == 0 else None
            other = whose if (whose.uid if whose else 0) != st.st_uid else led
            if other is not None:
                raise CannotFix(
                    "The home belongs to uid {owner}, but uid {uid} can replace it through "
                    "{folder}. Correct the owner of that folder first.",
                    owner=st.st_uid,
                    uid=other.uid,
                    folder=other.folder,
                )
            if shared := shared_folder(home.path):
                raise CannotFix(
                    "Other users can write to {folder}, so root does not trust it. Run `chmod "
                    "go-w {folder}` first.",
                    folder=shared,
                )
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise CannotFix("Could not read the owner of the home: {reason}.", reason=why) from None
    except Trouble as trouble:
        raise CannotFix(str(trouble)) from None
    return account(st.st_uid)


class CommandResult(NamedTuple):
    """The exit code and last output line of a command."""

    code: int
    text: str
    """The last line that it printed, safe to show."""


def _program(name: str, user: Account | None) -> str:
    """The path of a program; raise CannotFix if it is missing or unsafe to run as that user."""
    program = shutil.which(name)
    if program is None:
        raise CannotFix(
            "The program {name} was not found. Install it or add it to PATH.", name=name
        )
    refuse_untrusted(Path(program), user)
    return program


def run_command(
    command: Sequence[str],
    *,
    user: Account | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> CommandResult:
    """Run a command to its end; raise CannotFix if it is missing or takes too long.

    `pass_fds` lists file descriptors that the command inherits.
    """
    import subprocess

    if user is None and command[0] in BY_ROOT and root_parent.is_separate():
        code, said = root_parent.ask_root("run", list(command), limit)
        return CommandResult(int(code), clean(str(said)))
    if user is not None and command[0] not in BY_ROOT and root_parent.is_separate():
        # The owner's programs must not see what root shows to this process.
        given = (list(command), dict(env or {}), limit, str(cwd or "/"))
        code, said = root_parent.ask_root("run_as_owner", *given, descriptors=pass_fds)
        return CommandResult(int(code), clean(str(said)))
    program = _program(command[0], user)
    options: dict[str, object] = user.options() if user else {}
    try:
        with limits.lifted():
            done = subprocess.run(
                [program, *command[1:]],
                env={"PATH": os.environ.get("PATH", _PATH), "LC_ALL": "C", **(env or {})},
                cwd=cwd or "/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=limit,
                start_new_session=True,
                pass_fds=pass_fds,
                **options,  # type: ignore[call-overload]
            )
    except subprocess.TimeoutExpired:
        raise CannotFix(
            "{program} did not answer within {time}. Try again later.",
            program=command[0],
            time=duration(limit),
        ) from None
    except OSError as error:
        why = os.strerror(error.errno or 0).lower()
        raise CannotFix(
            "Could not run {program}: {reason}.", program=command[0], reason=why
        ) from None
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return CommandResult(done.returncode, clean(lines[-1])[:200] if lines else "")


def run_checked(
    command: Sequence[str],
    *,
    user: Account | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
) -> None:
    """Run a command to its end; raise CannotFix unless it succeeds."""
    command_result = run_command(command, user=user, env=env, limit=limit)
    if command_result.code:
        shown = " ".join(command)
        raise CannotFix(
            "`{command}` failed with exit code {code}: {reason}",
            command=shown,
            code=command_result.code,
            reason=command_result.text or "no output",
        )


class StartedByRoot:
    """A process that root has started for this separate one; it ends by itself."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None if it still runs."""
        return self.wait(0.0)

    def wait(self, timeout: float) -> int | None:
        """The same, after waiting some seconds for its end."""
        self.returncode = root_parent.ask_root("exit_code", self.pid, timeout)
        return self.returncode


def not_started(program: str, error: OSError) -> CannotFix:
    """Say that the system cannot run the Hermes that was found."""
    return CannotFix(
        "Hermes did not start: {command}: {reason}. Check its installation.",
        command=program,
        reason=os.strerror(error.errno or 0).lower(),
    )


def start_command(command: Sequence[str]) -> subprocess.Popen[bytes] | StartedByRoot:
    import subprocess

    if root_parent.is_separate():
        return StartedByRoot(root_parent.ask_root("begin", list(command)))
    with limits.lifted():
        return subprocess.Popen(
            [_program(command[0], None), *command[1:]],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def login_environment(user: Account) -> dict[str, str]:
    """The environment variables of a login of that user that a gateway needs."""
    made = {"PATH": _PATH, "LANG": os.environ.get("LANG", "C.UTF-8")}
    if user.folder:
        made["HOME"] = user.folder
        if user.uid != 0:  # sudo may have kept another user's HOME
            made["PATH"] = f"{user.folder}/.local/bin:{_PATH}"
    if user.name:
        made["USER"] = made["LOGNAME"] = user.name
    for name in ("TZ",):
        if name in os.environ:
            made[name] = os.environ[name]
    return made
