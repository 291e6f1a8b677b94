"""Read the state, limits, memory, control group and environment of a process from the kernel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.open_files import DELETED, Descriptor

_LIKE_SOURCE = (".py", ".so", ".pyc")
MOST_DELETED = 100
MOST_BYTES = 8 * 1024 * 1024


class ProcessDetails(NamedTuple):
    """What is known about one process; None where permissions did not suffice."""

    pid: int
    doing: str
    """The kernel's letter for its state: R, S, D, T for stopped, Z for a zombie."""
    started_at: datetime
    uid: int
    files: int | None
    """The number of open descriptors."""
    files_limit: int | None
    kinds: Mapping[str, int] | None
    """The number of open descriptors by target: a database's name, `socket`, `pipe` and so on."""
    deleted: tuple[str, ...] | None
    """Deleted files that it still has open or mapped."""
    memory: int
    memory_limit: int | None
    """The limit of its cgroup, if it has one."""
    environment: Mapping[str, str] | None
    """The variables that it was started with. They contain secrets: only names are shown."""
    memory_used: int | None = None
    """The memory of all processes of the cgroup, without what the kernel can drop."""
    start_time: int | None = None
    """When it began, in the kernel's ticks, as in gateway.pid."""
    waits_in: str = ""
    """The kernel function that it waits in; often hidden."""
    frozen: bool = False
    """Its cgroup is paused, as `docker pause` does."""

    @property
    def halted(self) -> bool:
        """Whether it is stopped or frozen until it is resumed from outside."""
        return self.doing in ("T", "t") or self.frozen


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that matter here."""

    name: str
    doing: str
    parent: int
    start_time: int


def stat(pid: int) -> Stat | None:
    """Read /proc/PID/stat of a process; None when it does not exist."""
    if not _has_proc():
        return _stat_elsewhere(pid)
    text = file_text(pid, "stat")
    name, found, rest = text.rpartition(")")
    fields = rest.split()
    if not found or len(fields) < 20:
        return None
    return Stat(name.partition("(")[2], fields[0], int(fields[1]), int(fields[19]))


def exists(pid: int) -> bool:
    """Whether a process with that pid exists, even one that /proc does not show us."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def pid_in_namespace(pid: int) -> int:
    """Return the pid that a process has in its own namespace, as in a container."""
    for line in file_text(pid, "status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def start_moment(start_time: int) -> datetime:
    """Convert a start time in ticks since boot to a time."""
    if not _has_proc():
        return datetime.fromtimestamp(start_time / 100, UTC)
    return datetime.fromtimestamp(boot_time() + start_time / os.sysconf("SC_CLK_TCK"), UTC)


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def boot_time() -> float:
    """Return when the machine was started, in seconds since 1970."""
    if not _has_proc():
        import psutil

        return psutil.boot_time()
    try:
        with open("/proc/stat") as file:
            return float(next(line for line in file if line.startswith("btime")).split()[1])
    except (OSError, StopIteration, ValueError, IndexError) as error:
        raise CouldNotLook("could not read when the machine was started") from error


def read_vitals(pid: int) -> ProcessDetails:
    """Read everything about one process; CouldNotLook if it has ended."""
    if not _has_proc():
        return _elsewhere(pid)
    seen = stat(pid)
    if seen is None:
        raise CouldNotLook("process {pid} has just stopped", pid=pid)
    status = dict(
        line.split(":", 1) for line in file_text(pid, "status").splitlines() if ":" in line
    )
    opened = open_files.descriptors(pid)
    group = group_of(file_text(pid, "cgroup"))
    return ProcessDetails(
        pid=pid,
        doing=seen.doing,
        started_at=start_moment(seen.start_time),
        uid=_number(status.get("Uid", ""), -1),
        files=None if opened is None else len(opened),
        files_limit=_limit(file_text(pid, "limits")),
        kinds=None if opened is None else _kinds(opened),
        deleted=None if opened is None else _deleted(pid, opened),
        memory=_number(status.get("VmRSS", ""), 0) * 1024,
        memory_limit=group.limit,
        environment=environment(pid),
        memory_used=group.used,
        start_time=seen.start_time,
        waits_in=waits_in(pid),
        frozen=group.frozen,
    )


def waits_in(pid: int) -> str:
    """Return the kernel function that the main thread waits in; empty when it is working."""
    place = file_text(pid, "wchan").strip("0\n")
    return place if place.isidentifier() else ""


def is_event_wait(kernel_function: str) -> bool:
    """Whether a kernel function is the one that an idle event loop waits in."""
    return "epoll" in kernel_function or "ep_poll" in kernel_function


def file_text(pid: int | Literal["self"], name: str) -> str:
    """Return a file that the kernel shows about a process; empty if it cannot be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return os.fsdecode(file.read(MOST_BYTES))
    except OSError:
        return ""


def _number(text: str, otherwise: int) -> int:
    words = text.split()
    return int(words[0]) if words and words[0].isdigit() else otherwise


def _limit(text: str) -> int | None:
    for line in text.splitlines():
        if line.startswith("Max open files"):
            word = line.split()[3]
            return int(word) if word.isdigit() else None
    return None


def _kinds(opened: list[Descriptor]) -> dict[str, int]:
    """Count descriptors by kind; a database and its sidecars count as one kind."""
    kinds: dict[str, int] = {}
    for descriptor in opened:
        name = descriptor.path
        if name.startswith("/"):
            name = name.rpartition("/")[2].removesuffix("-wal").removesuffix("-shm")
        else:
            name = name.partition(":")[0]
        kinds[name] = kinds.get(name, 0) + 1
    return kinds


def _deleted(pid: int, opened: list[Descriptor]) -> tuple[str, ...]:
    found = {file.path for file in opened if file.path.startswith("/") and file.path != file.target}
    for line in maps(pid).splitlines():
        if line.endswith(DELETED) and "/" in line:
            path = line[line.index("/") :].removesuffix(DELETED)
            if path.endswith(_LIKE_SOURCE) or ".so." in path:
                found.add(path)
    return tuple(sorted(found)[:MOST_DELETED])


def maps(pid: int) -> str:
    """Return the files that a process has mapped, as the kernel lists them; empty if unknown."""
    if found := file_text(pid, "maps"):
        return found
    return (open_files.process_by_root(pid) or {}).get("maps") or ""


def environment(pid: int) -> dict[str, str] | None:
    """Return the variables that a process was started with; None if they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = os.fsdecode(file.read(MOST_BYTES))
    except PermissionError:
        return (open_files.process_by_root(pid) or {}).get("environ")
    except OSError:
        return None
    pairs = (entry.partition("=") for entry in data.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


_LETTERS = {"stopped": "T", "zombie": "Z", "running": "R"}
"""The kernel's letters for psutil's names of process states."""


def _stat_elsewhere(pid: int) -> Stat | None:
    """Do the same as `stat` without /proc; there Hermes writes start times in 1/100 seconds."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            doing = _LETTERS.get(process.status(), "S")
            return Stat(process.name(), doing, process.ppid(), round(process.create_time() * 100))
    except (psutil.Error, OSError):
        return None


def _elsewhere(pid: int) -> ProcessDetails:
    """Do the same as `read_vitals` without /proc; what such a system does not report stays None."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            process_details = ProcessDetails(
                pid=pid,
                doing=_LETTERS.get(process.status(), "S"),
                started_at=datetime.fromtimestamp(process.create_time(), UTC),
                uid=process.uids().effective if hasattr(process, "uids") else -1,
                files=None,
                files_limit=None,
                kinds=None,
                deleted=None,
                memory=process.memory_info().rss,
                memory_limit=None,
                environment=None,
            )
    except (psutil.Error, OSError) as error:
        raise CouldNotLook("could not read process {pid}", pid=pid) from error
    try:
        return process_details._replace(files=process.num_fds(), environment=process.environ())
    except (psutil.Error, OSError, AttributeError):
        return process_details


_ROOT = Path("/sys/fs/cgroup")
_UNLIMITED = 2**60
"""Version 1 writes a number near 2**63 where there is no limit."""


class Group(NamedTuple):
    """The memory figures and the freezer state of one control group."""

    limit: int | None = None
    used: int | None = None
    kills: int | None = None
    """How many of its processes the kernel killed because memory ran out."""
    frozen: bool = False


def group_of(text: str) -> Group:
    """Read the group that /proc/PID/cgroup names, with the tightest limit of it and its parents."""
    version_1, version_2 = "", ""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "memory" in controllers.split(","):
            version_1 = path
        elif number == "0":
            version_2 = path
    if version_1:
        return _version_1(version_1)
    return _version_2(version_2) if version_2 else Group()


def _around(path: str) -> list[str]:
    """Return a group and its parents, innermost first; inside a container only its own show."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return ["/".join(parts[:n]) for n in range(len(parts), -1, -1)]


def _version_2(path: str) -> Group:
    own = _ROOT / _around(path)[0]
    tightest = _tightest(_ROOT, path, "memory.max", "memory.current", "inactive_file")
    return tightest._replace(
        kills=_fields(own / "memory.events").get("oom_kill"),
        frozen=_fields(own / "cgroup.events").get("frozen") == 1,
    )


def _version_1(path: str) -> Group:
    root = _ROOT / "memory"
    own = root / _around(path)[0]
    tightest = _tightest(
        *(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    )
    return tightest._replace(kills=_fields(own / "memory.oom_control").get("oom_kill"))


def _tightest(root: Path, path: str, limit_file: str, use_file: str, droppable: str) -> Group:
    """Return the figures of the group with the lowest limit among a group and its parents."""
    tightest = Group()
    for name in _around(path):
        folder = root / name
        limit = _number_in(folder / limit_file)
        known = _UNLIMITED if tightest.limit is None else tightest.limit
        if limit is not None and limit < known:
            used = _number_in(folder / use_file)
            dropped = _fields(folder / "memory.stat").get(droppable, 0)
            tightest = Group(limit, None if used is None else used - dropped)
    return tightest


def _number_in(path: Path) -> int | None:
    text = _read(path).strip()
    return int(text) if text.isdigit() else None


def _fields(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in _read(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(65536))
    except OSError:
        return ""
