"""Who holds a lock on a file, asked of the kernel instead of by trying to take it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_TABLE = Path("/proc/locks")


def holders(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """The processes that hold a lock on each of the paths; a path without one is left out.

    A process outside our pid namespace shows as 0: held, by somebody we cannot name.
    """
    wanted = {}
    for path in paths:
        try:
            st = os.stat(path)
        except OSError:
            continue
        wanted[f"{os.major(st.st_dev):02x}:{os.minor(st.st_dev):02x}:{st.st_ino}"] = path
    found: dict[Path, list[int]] = {}
    if not wanted:
        return found
    try:
        table = _TABLE.read_text()
    except OSError:
        return found
    for line in table.splitlines():
        fields = line.split()
        if "->" in fields:  # a process that waits for the lock
            continue
        if "OFDLCK" in fields:  # our own guard's; it names no process
            continue
        if len(fields) >= 6 and fields[5] in wanted:
            pids = found.setdefault(wanted[fields[5]], [])
            pid = max(0, int(fields[4]))
            if pid not in pids:
                pids.append(pid)
    return found
