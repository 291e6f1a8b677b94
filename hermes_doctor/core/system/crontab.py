"""Read and write the crontab of a user with the program `crontab`, and find out whether cron runs.

Cron of Debian, Red Hat, Alpine and macOS all have this program. Their folders differ, and only
root may read them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.accounts import account
from hermes_doctor.core.system.files import which

if TYPE_CHECKING:
    import subprocess

_READING, _WRITING = 5.0, 30.0
"""Seconds to wait for the program: a whole `check`, which only reads, takes at most 15."""
_PROGRAM = "crontab"
_NO_LINES = (b"no crontab", b"no such file")
"""What the program says if a user has no crontab; the second is from Alpine (BusyBox)."""
_DAEMONS = frozenset(("cron", "crond", "fcron", "dcron"))
_FOLDERS = ("/var/spool/cron/crontabs", "/var/spool/cron", "/etc/crontabs", "/var/cron/tabs")
"""Where the crontabs of users are, a file for each user."""
_PID_FILES = ("/run/crond.pid", "/run/cron.pid", "/var/run/crond.pid", "/var/run/cron.pid")


class NoCrontab(CouldNotLook):
    """The program `crontab` is missing."""


def is_installed() -> bool:
    """Whether there is a program to change a crontab."""
    return which(_PROGRAM) is not None


def is_surely_empty(uid: int) -> bool:
    """Whether a user has no crontab, by the folders of crontabs; often only root may see that.

    It spares `check` the start of a program, which takes longer than most checks.
    """
    name = account(uid).name
    present = [folder for folder in _FOLDERS if os.path.isdir(folder)]
    usual = which(_PROGRAM) == f"/usr/bin/{_PROGRAM}"  # another program has other folders
    if not usual or not name or not present or not all(os.access(one, os.X_OK) for one in present):
        return False
    return not any(os.path.lexists(f"{folder}/{name}") for folder in present)


def read_lines(uid: int | None = None) -> list[str]:
    """The lines of a user's crontab (our own by default); a missing one counts as empty.

    Raises CouldNotLook if the crontab cannot be read.
    """
    from hermes_doctor.core.system import root_parent

    if root_parent.is_separate():  # the program works only with the rights of its own file
        found: list[str] = root_parent.ask_root("crontab")
        return found
    done = _run([*_whose(uid), "-l"], _READING)
    if done.returncode and not any(words in done.stderr.lower() for words in _NO_LINES):
        raise CouldNotLook("Could not read the crontab. Run `crontab -l` to see why.")
    content = done.stdout.decode("utf-8", "surrogateescape") if not done.returncode else ""
    lines = content.split("\n")  # not splitlines(): a comment may contain other line separators
    return [line + "\n" for line in (lines if lines[-1] else lines[:-1])]


def write_lines(lines: Sequence[str]) -> None:
    """Replace our own crontab; without lines it is removed. Raises CannotFix if that fails."""
    try:
        data = "".join(lines).encode("utf-8", "surrogateescape")
        done = _run(["-"] if lines else ["-r"], _WRITING, data)
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    if done.returncode:
        raise CannotFix(
            "crontab rejected the new lines (exit code {code}). Run `crontab -e` to see why.",
            code=done.returncode,
        )


def _whose(uid: int | None) -> list[str]:
    """The words that name the user; none for ourselves. CouldNotLook if there is no such user."""
    if uid is None or uid == os.geteuid():
        return []
    name = account(uid).name
    if not name:
        raise CouldNotLook("The owner of the home has no account here.")
    return ["-u", name]


def _run(words: list[str], limit: float, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    import subprocess

    try:
        return subprocess.run(
            [_PROGRAM, *words],
            input=data,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except FileNotFoundError:
        raise NoCrontab("The program crontab is missing. Install cron first.") from None
    except (OSError, subprocess.TimeoutExpired):
        raise CouldNotLook("crontab does not answer. Try again later.") from None


def is_running() -> bool:
    """Whether a cron daemon runs here, by the names of the processes or by its pid file."""
    return bool(_DAEMONS & process_names()) or any(map(_is_alive, _PID_FILES))


def _is_alive(file: str) -> bool:
    """Whether the process of a pid file exists; one of root may be hidden from /proc."""
    try:
        with open(file) as opened:
            os.kill(int(opened.read(32)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def process_names() -> frozenset[str]:
    """Return the names; empty where there is no /proc."""
    try:
        pids = [entry for entry in os.listdir("/proc") if entry.isdigit()]
    except OSError:
        return frozenset()
    return frozenset(map(_name, pids))


def _name(pid: str) -> str:
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""
