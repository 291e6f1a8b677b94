"""Find the processes that hold a lock on a file, without trying to take the lock."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.lazy import NamedTuple

_TABLE = Path("/proc/locks")


class Lock(NamedTuple):
    """One lock that a process holds on a range of bytes of a file."""

    path: Path
    pid: int
    """0 for a process outside our pid namespace, whose pid is unknown."""
    write: bool
    first: int
    last: int


def locks_on(paths: Iterable[Path]) -> list[Lock]:
    """Return the locks that any process holds on these paths."""
    wanted = {}
    for path in paths:
        try:
            st = os.stat(path)
        except OSError:
            continue
        wanted[f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"] = path
    if not wanted:
        return []
    try:
        lines = _TABLE.read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        fields = line.split()
        if "->" in fields:  # a process that waits for the lock
            continue
        if "OFDLCK" in fields:  # our own guard lock; it has no pid
            continue
        if len(fields) >= 8 and fields[5] in wanted:
            last = 2**63 if fields[7] == "EOF" else int(fields[7])
            pid = max(0, int(fields[4]))
            found.append(Lock(wanted[fields[5]], pid, fields[3] == "WRITE", int(fields[6]), last))
    return found


def holders(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return the pids that hold a lock on each path; paths without a lock are left out."""
    found: dict[Path, list[int]] = {}
    for lock in locks_on(paths):
        pids = found.setdefault(lock.path, [])
        if lock.pid not in pids:
            pids.append(lock.pid)
    return found
