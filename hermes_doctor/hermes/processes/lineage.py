"""Read the service, the parent processes, and the container's files and time zone of a process.

Files are read through /proc; nothing runs in the container.
"""

from __future__ import annotations

import os

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.hermes.processes.process_stat import file_text, stat

_MANAGER = pattern(r"user@(\d+)\.service")
_CONTAINER = pattern(
    r"(?:(?:docker|libpod|crio|cri-containerd)-|/(?:docker|libpod|containerd)/|/kubepods\S*/)"
    r"([0-9a-f]{64})(?:\.scope)?(?:/|$)"
)
MOST_ANCESTORS = 64
_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "busybox")
_MARKS = ("/.dockerenv", "/run/.containerenv")
_MOUNTED = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf", "/run/.containerenv")
"""Files that every container engine mounts into its containers."""


class ControlGroup(NamedTuple):
    """The systemd service or the container that a process runs in, by its control group."""

    unit: str | None = None
    """The systemd service that it is part of."""
    manager: int | None = None
    """The uid whose user manager runs that service; None for the system manager."""
    container: str | None = None
    """The id of the container that it runs in, seen from outside."""


class Ancestor(NamedTuple):
    """A parent process, directly or over several generations."""

    pid: int
    name: str


def control_group_of(pid: int) -> ControlGroup:
    """Return the service or the container that a process runs in."""
    return parse_control_group(file_text(pid, "cgroup"))


def parse_control_group(text: str) -> ControlGroup:
    """Parse /proc/PID/cgroup: return the deepest group that is a service or a container."""
    paths = {}
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" or controllers == "name=systemd":
            paths[controllers] = path
    path = max(paths.values(), key=len, default="")  # one of them may be unused
    container = _CONTAINER.search(path)
    if container:
        return ControlGroup(container=container[1])
    parts = path.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        part = parts[depth]
        if part.endswith(".scope") or _MANAGER.fullmatch(part):
            return ControlGroup()
        if part.endswith(".service"):
            above = [match for one in parts[:depth] if (match := _MANAGER.fullmatch(one))]
            return ControlGroup(part, int(above[-1][1]) if above else None)
    return ControlGroup()


def ancestors(pid: int) -> list[Ancestor]:
    """Return its parent, grandparent and so on, as far as our pid namespace shows them."""
    found: list[Ancestor] = []
    seen = stat(pid)
    while seen and seen.parent > 0 and len(found) < MOST_ANCESTORS:
        parent = seen.parent
        seen = stat(parent)
        found.append(Ancestor(parent, seen.name if seen else ""))
    return found


def script_above(pid: int | None) -> tuple[int, int] | None:
    """Return the shell script that runs a process, by its process id and start time.

    If it outlives the process, it may be a loop.
    """
    above = ancestors(pid)[:1] if pid is not None else ()
    for parent in above:
        shell, *words = command_line(parent.pid) or [""]
        runs_script = "-c" in words or any(not word.startswith("-") for word in words)
        seen = stat(parent.pid)
        if seen and runs_script and os.path.basename(shell) in _SHELLS:
            return parent.pid, seen.start_time
    return None


def in_container() -> bool:
    """Whether this process runs in a container.

    A machine whose disk was made from an image has the mark of the image, too, but not the mounts.
    """
    if not any(map(os.path.exists, _MARKS)):
        return False
    mounts = file_text("self", "mountinfo")
    return not mounts or any(f" {place} " in mounts for place in _MOUNTED)


def name_of(pid: int) -> str:
    """Return the name of a process."""
    return file_text(pid, "comm").rstrip("\n")


def command_line(pid: int) -> list[str]:
    """Return the command line of a process."""
    return file_text(pid, "cmdline").split("\0")[:-1]


def container_has_file(pid: int, path: str) -> bool | None:
    """Whether there is such a file for the process; None if we may not look.

    A symlink counts as a file: its target may be a path of the container.
    """
    root = f"/proc/{pid}/root"
    try:
        os.stat(f"{root}/")
        os.lstat(root + path)
    except FileNotFoundError:
        return False if os.path.isdir(f"{root}/") else None
    except NotADirectoryError:
        return False
    except OSError:
        return None
    return True


def container_time_zone(pid: int) -> str | None:
    """The name of the time zone of the process's container; empty without one, None if unknown."""
    root = f"/proc/{pid}/root"
    try:
        os.stat(f"{root}/")
        return zone_of_link(os.readlink(f"{root}/etc/localtime"))
    except FileNotFoundError:
        return "" if os.path.isdir(f"{root}/") else None
    except OSError:
        return None


def own_time_zone() -> str:
    """The name of this machine's time zone; empty if it is unknown."""
    try:
        return zone_of_link(os.path.realpath("/etc/localtime"))
    except OSError:
        return ""


def zone_of_link(target: str) -> str:
    """The zone in a path such as /usr/share/zoneinfo/Asia/Shanghai; empty if there is none."""
    name = target.partition("/zoneinfo/")[2]
    return name.removeprefix("posix/").removeprefix("right/")
