"""Whether the kernel killed a process for want of memory: its own log, the journal, the cgroup."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import cgroup_memory, process_stat
from hermes_doctor.system import time_limits
from hermes_doctor.system.files import which

_KILLED = pattern(r"[Oo]ut of memory: Killed process (\d+) \(([^)]{1,32})\)")
_KERNEL = pattern(r"\d+,\d+,(\d+),[^;]*;(.*)")
_JOURNAL = pattern(r"(\d+)\.(\d+) (.*)")
MOST = 20_000
"""Records of the kernel's log that are looked at."""
PATIENCE = 1.0


class Kill(NamedTuple):
    """One process that was killed for want of memory."""

    pid: int
    name: str
    at: datetime
    where: str


def find(pid: int, began: datetime) -> Kill | None:
    """The kill of this very process, which began then; ids are used again, times are not."""
    for kill in _from_kernel() or _from_journal(began):
        if kill.pid == pid and kill.at >= began - timedelta(seconds=5):
            return kill
    return None


def here() -> int:
    """How many processes of our own control group were killed so: in a container, its gateway's."""
    try:
        with open("/proc/self/cgroup") as file:
            return cgroup_memory.group_of(file.read(65536)).kills or 0
    except OSError:
        return 0


def _from_kernel() -> list[Kill]:
    """The kernel's own log, from a reader's place of its own: nobody else misses a record."""
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    found = []
    try:
        boot = process_stat.boot_time()
        end = time.monotonic() + time_limits.stretched(PATIENCE)
        for _ in range(MOST):
            try:
                record = os.read(fd, 8192)
            except BrokenPipeError:  # overwritten meanwhile: the next one is there
                continue
            if not record or time.monotonic() > end:
                break
            if kill := _in_kernel(record.decode("utf-8", "replace"), boot):
                found.append(kill)
    except (OSError, CouldNotLook):
        pass  # at the end of the log, or not ours to read
    finally:
        os.close(fd)
    return found


def _in_kernel(record: str, boot: float) -> Kill | None:
    """One record: its microseconds since the machine's start, then its text."""
    said = _KERNEL.match(record)
    killed = _KILLED.search(said[2]) if said else None
    if not said or not killed:
        return None
    at = datetime.fromtimestamp(boot + int(said[1]) / 1e6, UTC)
    return Kill(int(killed[1]), killed[2], at, "the kernel's log")


def _from_journal(began: datetime) -> list[Kill]:
    """The same as the journal kept it."""
    from hermes_doctor.system import commands

    if not which("journalctl"):
        return []
    options = ["--dmesg", "--quiet", "--no-pager", "--output=short-unix", "--lines=200"]
    since = f"--since=@{began.timestamp():.0f}"
    try:
        said = commands.ask("journalctl", *options, "--grep=Killed process", since)
    except CouldNotLook:
        return []
    return _in_journal(said.out)


def _in_journal(text: str) -> list[Kill]:
    found = []
    for line in text.splitlines():
        said = _JOURNAL.match(line)
        if said and (killed := _KILLED.search(said[3])):
            at = datetime.fromtimestamp(int(said[1]), UTC)
            found.append(Kill(int(killed[1]), killed[2], at, "the journal"))
    return found
