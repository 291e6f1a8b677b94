"""One process as the kernel sees it: what it does, what it has open, what it may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import cgroup_memory, descriptors
from hermes_doctor.processes.descriptors import DELETED, Descriptor

_LIKE_SOURCE = (".py", ".so", ".pyc")
MOST_PARENTS = 64
MOST_DELETED = 100
MOST_BYTES = 8 * 1024 * 1024


class Vitals(NamedTuple):
    """One process; what the rights did not suffice for is None."""

    pid: int
    doing: str
    """The kernel's letter: R, S, D, T for stopped, Z for dead but not buried."""
    started_at: datetime
    uid: int
    parents: tuple[tuple[int, str], ...]
    """Its parent, grandparent and so on up to process 1, with their names."""
    files: int | None
    """Open descriptors."""
    files_limit: int | None
    kinds: Mapping[str, int] | None
    """Open descriptors by what they lead to: a database's name, `socket`, `pipe`, and so on."""
    deleted: tuple[str, ...] | None
    """Files that it has open or mapped although they are no longer in their place."""
    memory: int
    memory_limit: int | None
    """The cgroup's, where it has one."""
    environment: Mapping[str, str] | None
    """What it was started with. Holds secrets: never shown, only names are."""
    memory_used: int | None = None
    """What all processes of the cgroup use together, without what the kernel can drop."""
    start_time: int | None = None
    """When it began, in the kernel's ticks, as gateway.pid names it."""
    waits_in: str = ""
    """The place in the kernel where it waits; often hidden."""
    frozen: bool = False
    """Its cgroup is paused, as `docker pause` does."""

    @property
    def halted(self) -> bool:
        """It does nothing until somebody wakes it."""
        return self.doing in ("T", "t") or self.frozen


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that matter here."""

    name: str
    doing: str
    parent: int
    start_time: int


def stat(pid: int) -> Stat | None:
    """What the kernel says of a process; None when there is none."""
    if not _has_proc():
        return _stat_elsewhere(pid)
    text = _text(pid, "stat")
    name, found, rest = text.rpartition(")")
    fields = rest.split()
    if not found or len(fields) < 20:
        return None
    return Stat(name.partition("(")[2], fields[0], int(fields[1]), int(fields[19]))


def exists(pid: int) -> bool:
    """Whether there is a process of that number, even one that /proc does not show to us."""
    if sys.platform == "win32":  # there that signal is Ctrl-C
        import psutil

        return psutil.pid_exists(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def own_number(pid: int) -> int:
    """The number that a process knows itself by: in a container it counts from 1 again."""
    for line in _text(pid, "status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid


def started(start_time: int) -> datetime:
    """The moment that a start in ticks since the machine's start means."""
    if not _has_proc():
        return datetime.fromtimestamp(start_time / 100, UTC)
    return datetime.fromtimestamp(boot_time() + start_time / os.sysconf("SC_CLK_TCK"), UTC)


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")


def boot_time() -> float:
    """When the machine was started."""
    if not _has_proc():
        import psutil

        return psutil.boot_time()
    try:
        with open("/proc/stat") as file:
            return float(next(line for line in file if line.startswith("btime")).split()[1])
    except (OSError, StopIteration, ValueError, IndexError) as error:
        raise CouldNotLook("when the machine was started is not known") from error


def take(pid: int) -> Vitals:
    """Look at one process."""
    if not _has_proc():
        return _elsewhere(pid)
    seen = stat(pid)
    if seen is None:
        raise CouldNotLook(f"process {pid} is no longer there")
    status = dict(line.split(":", 1) for line in _text(pid, "status").splitlines() if ":" in line)
    opened = descriptors.of(pid)
    group = cgroup_memory.group_of(_text(pid, "cgroup"))
    return Vitals(
        pid=pid,
        doing=seen.doing,
        started_at=started(seen.start_time),
        uid=_number(status.get("Uid", ""), -1),
        parents=_parents(seen.parent),
        files=None if opened is None else len(opened),
        files_limit=_limit(_text(pid, "limits")),
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
    """The place in the kernel where the main thread of a process waits; empty when it works."""
    place = _text(pid, "wchan").strip("0\n")
    return place if place.isidentifier() else ""


def is_for_events(place: str) -> bool:
    """Whether a place in the kernel is the one where an event loop rests."""
    return "epoll" in place or "ep_poll" in place


def waits_for_events(pid: int) -> bool:
    """Whether the main thread of a process waits there now."""
    return is_for_events(waits_in(pid))


def _text(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return os.fsdecode(file.read(MOST_BYTES))
    except OSError:
        return ""


def _number(text: str, otherwise: int) -> int:
    words = text.split()
    return int(words[0]) if words and words[0].isdigit() else otherwise


def _parents(pid: int) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    while pid > 0 and len(found) < MOST_PARENTS and (seen := stat(pid)):
        found.append((pid, seen.name))
        pid = seen.parent
    return tuple(found)


def _limit(text: str) -> int | None:
    for line in text.splitlines():
        if line.startswith("Max open files"):
            word = line.split()[3]
            return int(word) if word.isdigit() else None
    return None


def _kinds(opened: list[Descriptor]) -> dict[str, int]:
    """How many lead to each kind; databases and their logs count as one."""
    kinds: dict[str, int] = {}
    for one in opened:
        name = one.path
        if name.startswith("/"):
            name = name.rpartition("/")[2].removesuffix("-wal").removesuffix("-shm")
        else:
            name = name.partition(":")[0]
        kinds[name] = kinds.get(name, 0) + 1
    return kinds


def _deleted(pid: int, opened: list[Descriptor]) -> tuple[str, ...]:
    found = {one.path for one in opened if one.path.startswith("/") and one.path != one.target}
    for line in _text(pid, "maps").splitlines():
        if line.endswith(DELETED) and "/" in line:
            path = line[line.index("/") :].removesuffix(DELETED)
            if path.endswith(_LIKE_SOURCE) or ".so." in path:
                found.add(path)
    return tuple(sorted(found)[:MOST_DELETED])


def environment(pid: int) -> dict[str, str] | None:
    """The variables that a process was started with; None where they cannot be seen."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            data = os.fsdecode(file.read(MOST_BYTES))
    except OSError:
        return None
    pairs = (entry.partition("=") for entry in data.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


_LETTERS = {"stopped": "T", "zombie": "Z", "running": "R"}
"""psutil's words for what a process does."""


def _stat_elsewhere(pid: int) -> Stat | None:
    """In short, where there is no /proc; Hermes notes a start there in hundredths of a second."""
    import psutil

    try:
        one = psutil.Process(pid)
        with one.oneshot():
            doing = _LETTERS.get(one.status(), "S")
            return Stat(one.name(), doing, one.ppid(), round(one.create_time() * 100))
    except (psutil.Error, OSError):
        return None


def _elsewhere(pid: int) -> Vitals:
    """The same where there is no /proc; what such a system does not tell stays None."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            found = Vitals(
                pid=pid,
                doing=_LETTERS.get(process.status(), "S"),
                started_at=datetime.fromtimestamp(process.create_time(), UTC),
                uid=process.uids().effective if hasattr(process, "uids") else -1,
                parents=tuple((one.pid, one.name()) for one in process.parents()),
                files=None,
                files_limit=None,
                kinds=None,
                deleted=None,
                memory=process.memory_info().rss,
                memory_limit=None,
                environment=None,
            )
    except (psutil.Error, OSError) as error:
        raise CouldNotLook(f"process {pid} cannot be looked at") from error
    try:
        return found._replace(files=process.num_fds(), environment=process.environ())
    except (psutil.Error, OSError, AttributeError):
        return found
