"""Find processes that the kernel killed because memory ran out.

The sources are the kernel's log, the journal and the control group.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits, root_parent
from hermes_doctor.core.system.files import which
from hermes_doctor.hermes.processes import process_stat

_KILLED = pattern(r"[Oo]ut of memory: Killed process (\d+) \(([^)]{1,32})\)")
_KERNEL = pattern(r"\d+,\d+,(\d+),[^;]*;(.*)")
_JOURNAL = pattern(r"(\d+)\.(\d+) (.*)")
MOST = 20_000
"""The most records of the kernel's log that are read."""
PATIENCE = 1.0


class Kill(NamedTuple):
    """One process that the kernel killed because memory ran out."""

    pid: int
    name: str
    at: datetime
    where: str


def find(pid: int, started_at: datetime) -> Kill | None:
    """Return the kill of this process; its start time is compared, as pids are used again."""
    for kill in from_kernel() or _from_journal(started_at):
        if kill.pid == pid and kill.at >= started_at - timedelta(seconds=5):
            return kill
    return None


def kills_in_own_group() -> int:
    """Return the number of OOM kills in our control group: in a container, that of its gateway."""
    try:
        with open("/proc/self/cgroup") as file:
            return process_stat.group_of(file.read(65536)).kills or 0
    except OSError:
        return 0


def from_kernel() -> list[Kill]:
    """Read the kills from the kernel's log; each reader has its own position in it."""
    if root_parent.is_separate():  # often only root may read it
        shown = root_parent.ask_root("kernel_kills")
        return [
            Kill(pid, name, datetime.fromisoformat(at), where) for pid, name, at, where in shown
        ]
    try:
        fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    kills: list[Kill] = []
    try:
        boot = process_stat.boot_time()
        end = time.monotonic() + limits.stretch(PATIENCE)
        for _ in range(MOST):
            try:
                record = os.read(fd, 8192)
            except BrokenPipeError:  # this record was overwritten; the next one is available
                continue
            if not record or time.monotonic() > end:
                break
            if kill := _in_kernel(record.decode("utf-8", "replace"), boot):
                kills.append(kill)
    except (OSError, CouldNotLook):
        pass  # the end of the log, or no permission to read it
    finally:
        os.close(fd)
    return kills


def _in_kernel(record: str, boot: float) -> Kill | None:
    """Parse one record: microseconds since boot, then the text; None if it is not a kill."""
    line_match = _KERNEL.match(record)
    killed = _KILLED.search(line_match[2]) if line_match else None
    if not line_match or not killed:
        return None
    at = datetime.fromtimestamp(boot + int(line_match[1]) / 1e6, UTC)
    return Kill(int(killed[1]), killed[2], at, "the kernel's log")


def _from_journal(started_at: datetime) -> list[Kill]:
    """Read the kills from the systemd journal."""
    from hermes_doctor.core.system import commands

    if not which("journalctl"):
        return []
    options = ["--dmesg", "--quiet", "--no-pager", "--output=short-unix", "--lines=200"]
    since = f"--since=@{started_at.timestamp():.0f}"
    try:
        command_output = commands.ask("journalctl", *options, "--grep=Killed process", since)
    except CouldNotLook:
        return []
    return _in_journal(command_output.out)


def _in_journal(text: str) -> list[Kill]:
    kills = []
    for line in text.splitlines():
        line_match = _JOURNAL.match(line)
        if line_match and (killed := _KILLED.search(line_match[3])):
            at = datetime.fromtimestamp(int(line_match[1]), UTC)
            kills.append(Kill(int(killed[1]), killed[2], at, "the journal"))
    return kills
