"""What root does for a process that looks at another user's home; see `separate_process`.

This page is the whole list. Each action reads only, and takes nothing from the home: a process is
shown as far as it uses the home or is a gateway, and a command is one of these few, with these
words and no others.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.home import Home
from hermes_doctor.knowledge import learned
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import descriptors, oom_kills, process_stat, sockets
from hermes_doctor.processes.gateway_command import is_gateway
from hermes_doctor.processes.home_of import LOCK, may_belong
from hermes_doctor.records import last_ask
from hermes_doctor.supervisors import docker, docker_stop, watch_keeper
from hermes_doctor.system import commands, crontab
from hermes_doctor.system.files import read
from hermes_doctor.system.separate_process import Action

_ENGINE = r"(ps|inspect|logs|events|version|info)( .*)?|cp [0-9a-f]+:/etc/passwd -"
_COMMANDS = {
    "journalctl": r"( ?(--no-pager|--quiet|--dmesg|--output=(json|short-unix)|--lines=\d+"
    r"|--output-fields=[A-Z_,]+|--since=@\d+|--until=@\d+|--grep=Killed process|\+"
    r"|(--unit|_SYSTEMD_USER_UNIT|USER_UNIT)=[\w@.:\\-]+|_UID=\d+))+",
    "/command/s6-svstat": r"/run/service/gateway-\w[\w.-]*",
    "docker": _ENGINE,
    "podman": _ENGINE,
}
"""The programs that root runs, and the words that may follow. None of these writes anything."""


_NAMESPACES = ("mnt", "pid", "user", "net")


def actions(home: Path) -> Mapping[str, Action]:
    """The actions for a process that looks at this home."""
    owner = os.stat(home).st_uid
    return {
        "command": _command,
        "process": lambda pid: _process(home, int(pid)),
        "last_ask": lambda: _last_ask(Home(home)),
        "learned": lambda version, commit: _learned(str(version), commit, owner),
        "running_watch": lambda: watch_keeper.running_watch(Home(home)),
        "kernel_kills": lambda: [
            [one.pid, one.name, one.at.isoformat(), one.where] for one in oom_kills.from_kernel()
        ],
        "engine": docker.engine,
        "stopped_by_record": _stopped_by_record,
        "crontab": lambda: crontab.read_lines(owner),
        "process_with_socket": lambda inode: sockets.process_with_socket(int(inode)),
    }


def _last_ask(home: Home) -> str | None:
    """Return root's own record of its last question to the bot."""
    try:
        return read(last_ask.file_of(home), last_ask.LARGEST)[0].decode()
    except (FileNotFoundError, ValueError):
        return None


def _learned(version: str, commit: str | None, owner: int) -> dict[str, Any] | None:
    """Return what root has learned from the Hermes of this owner."""
    if commit is not None and not re.fullmatch("[0-9a-f]{1,64}", commit):
        return None
    path = learned.path_of(version, commit, owner)
    found = learned.load(path) if path else None
    return learned.document(found) if found else None


def _stopped_by_record(id: str) -> str:
    """Return what Docker's record of a container says about its stop."""
    engine = docker.engine()
    if engine is None or not re.fullmatch("[0-9a-f]+", id):
        return ""
    answer = commands.ask(engine, "inspect", "--type", "container", "--format", _HOSTNAME, id)
    return docker_stop.by_record(id, docker_stop.record_of(answer.out.strip()))


_HOSTNAME = "{{.HostnamePath}}"


def _command(words: list[str], limit: float, max_bytes: int) -> list[Any]:
    """Run a command that only reads, and return its exit code and output."""
    program, *others = map(str, words)
    allowed = _COMMANDS.get(program)
    if allowed is None or not re.fullmatch(allowed, " ".join(others), re.DOTALL):
        raise CouldNotLook(text("root does not run {program} like this", program=program))
    return list(commands.ask(program, *others, limit=float(limit), max_bytes=int(max_bytes)))


def _process(home: Path, pid: int) -> dict[str, Any] | None:
    """Show a process that its user hides from the home's owner; None if it has ended.

    Of a gateway that may be the home's own, everything that a check asks for; of any other gateway,
    which home it uses; of any other process, the files of the home that it has open.
    """
    opened = descriptors.of(pid)
    seen = process_stat.stat(pid)
    if opened is None or seen is None:
        return None
    argv = _argv(pid)
    gateway = is_gateway(argv) or (len(argv) <= 1 and seen.name == "hermes")
    own = gateway and may_belong(pid, home)
    base = f"{os.path.realpath(home)}/"
    shown = [
        one
        for one in opened
        if own or one.path.startswith(base) or (gateway and one.path.endswith(f"/{LOCK}"))
    ]
    environ = (process_stat.environment(pid) or {}) if gateway else None
    if environ is not None and not own:
        environ = {name: environ[name] for name in ("HERMES_HOME", "HOME") if name in environ}
    return {
        "files": [[one.number, one.target, *_identity(pid, one.number)] for one in shown],
        "details": {one.number: _text(f"/proc/{pid}/fdinfo/{one.number}") for one in shown},
        "environ": environ,
        "cwd": _link(f"/proc/{pid}/cwd") if gateway else None,
        "namespaces": {kind: _link(f"/proc/{pid}/ns/{kind}") for kind in _NAMESPACES},
        "maps": _text(f"/proc/{pid}/maps") if own else None,
    }


def _argv(pid: int) -> list[str]:
    return _text(f"/proc/{pid}/cmdline").split("\0")[:-1]


def _identity(pid: int, number: str) -> tuple[int, int]:
    with contextlib.suppress(OSError):
        st = os.stat(f"/proc/{pid}/fd/{number}")
        return st.st_dev, st.st_ino
    return -1, -1


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _text(path: str) -> str:
    try:
        with open(path, errors="surrogateescape") as file:
            return file.read(process_stat.MOST_BYTES)
    except OSError:
        return ""
