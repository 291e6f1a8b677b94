"""Run read-only system commands with a time limit, without a shell and without a terminal."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits

if TYPE_CHECKING:
    import subprocess

LIMIT = 2.0
"""Seconds that one command may take; a working service manager answers within 0.1 s."""
_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "SYSTEMROOT", "CONTAINER_HOST"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
)
MOST = 1_000_000
BY_ROOT = ("docker", "podman", "journalctl", "/command/s6-svstat")
"""Programs that a separate process lets root run, because they need its rights."""


class RunAs(NamedTuple):
    """The user that a command runs as."""

    uid: int
    gid: int


class CommandOutput(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def ask(
    *command: str,
    env: Mapping[str, str] | None = None,
    user: RunAs | None = None,
    limit: float | None = None,
    max_bytes: int = MOST,
    stdin: bytes | None = None,
) -> CommandOutput:
    """Run a command that changes nothing; `CouldNotLook` when it does not answer in time.

    `stdin` is what it reads from its standard input.
    """
    import subprocess

    from hermes_doctor.core.system import root_parent

    limit = LIMIT if limit is None else limit
    if command[0] in BY_ROOT and root_parent.is_separate():
        return CommandOutput(*root_parent.ask_root("command", list(command), limit, max_bytes))
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"LC_ALL": "C", "LANGUAGE": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    become = {"user": user.uid, "group": user.gid, "extra_groups": [user.gid]} if user else {}
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            env=environ | dict(env or {}),
            cwd="/",
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **become,  # type: ignore[call-overload]
        )
    except (OSError, ValueError) as error:
        raise CouldNotLook("{program} could not be run", program=command[0]) from error
    with process:
        try:
            said = _wait(process, stdin, limit)
        except TimeoutError:
            raise CouldNotLook(
                "{program} did not answer within {limit:g} s", program=command[0], limit=limit
            ) from None
        finally:
            if process.returncode is None:  # not reaped yet, so the pid is still its own
                _end(process)
    out, err = (output[:max_bytes].decode("utf-8", "replace") for output in said)
    return CommandOutput(process.returncode, out, err)


def _wait(
    process: subprocess.Popen[bytes], given: bytes | None, limit: float
) -> tuple[bytes, bytes]:
    """Return its output; TimeoutError after `limit` seconds, counted as on an idle machine."""
    import subprocess

    clock = limits.Stopwatch()
    while (left := limit - clock.read()) > 0:
        try:
            return process.communicate(given, timeout=min(left, limits.SLICE))
        except subprocess.TimeoutExpired:
            given = None  # it was already sent
    raise TimeoutError


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command together with all processes that it started."""
    if hasattr(os, "killpg"):
        import signal

        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
