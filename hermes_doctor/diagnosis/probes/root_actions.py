"""What root does for a process that looks at another user's home; see `separate_process`.

This page is the whole list. Each action reads only, and takes nothing from the home: a process is
shown as far as it uses the home or is a gateway, a command is one of these few, with these words
and no others, and a container is one that root itself found to be of this home.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hermes_doctor.backup.records import last_ask
from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import commands, crontab, open_files
from hermes_doctor.core.system.files import read
from hermes_doctor.core.system.privileges import is_inside_folder_of
from hermes_doctor.core.system.separate_process import Action
from hermes_doctor.hermes.knowledge import releases
from hermes_doctor.hermes.processes import (
    gateway_processes,
    lineage,
    oom_kills,
    process_stat,
    sockets,
)
from hermes_doctor.hermes.processes.home_of import (
    LOCK,
    home_by_environment,
    home_by_lock_file,
    is_gateway,
    profile_in,
    user_ids,
)
from hermes_doctor.hermes.supervisors import docker, docker_stop, starters

_COMMANDS = {
    "journalctl": r"( ?(--no-pager|--quiet|--dmesg|--output=(json|short-unix)|--lines=\d+"
    r"|--output-fields=[A-Z_,]+|--since=@\d+|--until=@\d+|--grep=Killed process|\+"
    r"|(--unit|_SYSTEMD_USER_UNIT|USER_UNIT)=[\w@.:\\-]+|_UID=\d+))+",
    "/command/s6-svstat": r"/run/service/gateway-\w[\w.-]*",
}
"""The programs that root runs, and the words that may follow. None of these writes anything."""
_OF_CONTAINERS = (
    r"inspect --type container( --format [^\0]*)?(?P<ids>( [0-9a-f]+)+)",
    r"logs( --timestamps| --since=\d+| --tail=\d+| --tail \d+)*(?P<ids> [0-9a-f]+)",
    r"events --since \d[\w.:+-]* --until 0s --filter container=(?P<ids>[0-9a-f]+)"
    r" --filter event=kill --filter event=die --format [^\0]*",
    r"cp (?P<ids>[0-9a-f]+):/etc/passwd -",
)
"""The words that may follow `docker` or `podman`, about containers of the home."""

_NAMESPACES = ("mnt", "pid", "user", "net")


def actions(home: Path, owner: int) -> Mapping[str, Action]:
    """The actions for a process of this user that looks at this home."""
    containers = Containers(home, owner)
    return {
        "command": lambda *given: _command(containers, *given),
        "containers": containers.find,
        "process": lambda pid: _process(home, owner, int(pid)),
        "last_ask": lambda: _last_ask(Home(home)),
        "learned": lambda version, commit: _learned(str(version), commit, owner),
        "running_watch": lambda: starters.running_watch(Home(home)),
        "kernel_kills": lambda: [
            [kill.pid, kill.name, kill.at.isoformat(), kill.where]
            for kill in oom_kills.from_kernel()
        ],
        "engine": docker.engine,
        "stopped_by_record": lambda id: _stopped_by_record(containers, str(id)),
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
    path = releases.learned_path(version, commit, owner)
    learned = releases.load_learned(path) if path else None
    return releases.learned_document(learned) if learned else None


class Containers:
    """The containers of one home, as root found them."""

    def __init__(self, home: Path, owner: int) -> None:
        self._home, self._owner = home, owner
        self._known: set[str] | None = None

    def find(self, limit: float | None = None) -> list[str] | None:
        """Return those that have the home as a volume; None if that is not known."""
        folder, engine = folder_of(self._home, self._owner), docker.engine()
        listed = docker.all_of_folder(engine, folder, limit) if engine and folder else None
        self._known = {*(listed or ()), *(_of_gateways(folder) if folder else ())}
        return listed

    def refuse_others(self, ids: list[str]) -> None:
        """Raise CouldNotLook unless all of these are of this home."""
        if self._known is None:
            self.find()
        if not ids or not self._known or not self._known.issuperset(ids):
            raise CouldNotLook("root asks only about containers of this home")


def folder_of(home: Path, owner: int) -> docker.Folder | None:
    """The folder of the home, opened once: its owner may swap it for a link to another one."""
    try:
        fd = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        st = os.fstat(fd)
        real = os.readlink(f"/proc/self/fd/{fd}")
        mine = is_inside_folder_of(owner, fd)
    finally:
        os.close(fd)
    return docker.Folder(real, (st.st_dev, st.st_ino)) if mine else None


def _of_gateways(folder: docker.Folder) -> set[str]:
    """Return the containers in which a gateway of the home runs; the kernel says which they are."""
    found = set()
    for candidate in gateway_processes.candidates():
        container = lineage.control_group_of(candidate.gateway.pid).container
        with contextlib.suppress(OSError):
            st = os.stat(candidate.claim.home) if candidate.claim and container else None
            if container and st and (st.st_dev, st.st_ino) == folder.identity:
                found.add(container)
    return found


def _stopped_by_record(containers: Containers, id: str) -> str:
    """Return what Docker's record of a container says about its stop."""
    containers.refuse_others([id])
    engine = docker.engine()
    if engine is None:
        return ""
    answer = commands.ask(engine, "inspect", "--type", "container", "--format", _HOSTNAME, id)
    return docker_stop.by_record(id, docker_stop.record_of(answer.out.strip()))


_HOSTNAME = "{{.HostnamePath}}"


def _command(containers: Containers, words: list[str], limit: float, max_bytes: int) -> list[Any]:
    """Run a command that only reads, and return its exit code and output."""
    program, *others = map(str, words)
    if program in ("docker", "podman"):
        said = "\0".join(others)  # so that a word with spaces is one word
        forms = (re.fullmatch(form.replace(" ", "\0"), said) for form in _OF_CONTAINERS)
        allowed = next(filter(None, forms), None)
        if allowed is not None:
            containers.refuse_others(allowed["ids"].strip("\0").split("\0"))
    else:
        allowed = re.fullmatch(_COMMANDS.get(program, "(?!)"), " ".join(others), re.DOTALL)
    if allowed is None:
        raise CouldNotLook("root does not run {program} like this", program=program)
    return list(commands.ask(program, *others, limit=float(limit), max_bytes=int(max_bytes)))


def _process(home: Path, owner: int, pid: int) -> dict[str, Any] | None:
    """Show a process that its user hides from the home's owner; None if it has ended.

    Of a gateway that may be the home's own, everything that a check asks for; of any other gateway,
    which home it uses; of any other process, the files of the home that it has open.
    """
    opened = open_files.descriptors(pid)
    seen = process_stat.stat(pid)
    if opened is None or seen is None:
        return None
    argv = _text(f"/proc/{pid}/cmdline").split("\0")[:-1]
    gateway = is_gateway(argv) or (len(argv) <= 1 and seen.name == "hermes")
    real = real_path(home, owner)
    own = gateway and real is not None and _is_of_owner(pid, argv, owner)
    base = f"{real}/" if real else "\0"  # which no path has
    shown = [
        descriptor
        for descriptor in opened
        if own
        or descriptor.path.startswith(base)
        or (gateway and descriptor.path.endswith(f"/{LOCK}"))
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


def _is_of_owner(pid: int, argv: list[str], owner: int) -> bool:
    """Whether a gateway runs as the owner, or as root in a home of the owner.

    The folder is opened once, because the owner may swap it for a link to a home of root's.
    """
    users = user_ids(pid)
    if users is None or not users <= {0, owner}:
        return False
    claim = home_by_lock_file(pid) or home_by_environment(pid, profile_in(argv))
    if users == {owner} or claim is None:
        return users == {owner}
    try:
        fd = os.open(claim.home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return is_inside_folder_of(owner, fd)
    finally:
        os.close(fd)


def real_path(home: Path, owner: int) -> str | None:
    """The path of the home without links; None if it leads out of what belongs to its owner.

    Its owner may swap it for a link at any moment. Nothing is opened.
    """
    with contextlib.suppress(OSError):
        real = os.path.realpath(home)
        places = (real, *map(str, Path(real).parents))
        return real if any(os.lstat(place).st_uid == owner for place in places) else None
    return None


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
