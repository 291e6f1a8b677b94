"""List the files that a process has open or locked, and ask root for what its user hides."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import root_parent

DELETED = " (deleted)"


class Descriptor(NamedTuple):
    """One open file descriptor of a process."""

    number: str
    """Empty on systems without /proc."""
    target: str
    """Its target as the kernel writes it: a path, perhaps with ` (deleted)`, or `socket:[7]`."""

    @property
    def path(self) -> str:
        """The path of its target, even if the file was deleted."""
        return self.target.removesuffix(DELETED)


def descriptors(pid: int) -> list[Descriptor] | None:
    """Return the descriptors of a process; None when it has ended or they may not be read."""
    if not os.path.isdir("/proc/self"):
        return _by_psutil(pid)
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return _shown_by_root(pid)
    except OSError:
        return None
    found = []
    for name in names:
        try:
            found.append(Descriptor(name, os.readlink(f"{folder}/{name}")))
        except PermissionError:
            return _shown_by_root(pid)
        except OSError:  # closed since
            continue
    return found


def _shown_by_root(pid: int) -> list[Descriptor] | None:
    """Return what root shows of the descriptors of a process; None if it shows nothing."""
    seen = process_by_root(pid)
    return None if seen is None else [Descriptor(*one[:2]) for one in seen["files"]]


def only_reads(pid: int, number: str) -> bool:
    """Whether a descriptor was opened for reading only; False if that is not known."""
    try:
        with open(f"/proc/{pid}/fdinfo/{number}") as file:
            flags = next(line.split()[1] for line in file if line.startswith("flags:"))
    except (OSError, StopIteration, IndexError):
        return False
    return int(flags, 8) & os.O_ACCMODE == os.O_RDONLY


def identity(pid: int, number: str) -> tuple[int, int]:
    """Return device and inode of what a descriptor of a process leads to; OSError if it cannot."""
    try:
        st = os.stat(f"/proc/{pid}/fd/{number}")
    except PermissionError:
        if (found := _identity_by_root(pid, number)) is None:
            raise
        return found
    return st.st_dev, st.st_ino


def _by_psutil(pid: int) -> list[Descriptor] | None:
    import psutil

    try:
        return [Descriptor("", file.path) for file in psutil.Process(pid).open_files()]
    except (psutil.Error, OSError):
        return None


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
    locks = []
    for line in lines:
        fields = line.split()
        if "->" in fields:  # a process that waits for the lock
            continue
        if "OFDLCK" in fields:  # our own guard lock; it has no pid
            continue
        if len(fields) >= 8 and fields[5] in wanted:
            last = 2**63 if fields[7] == "EOF" else int(fields[7])
            pid = max(0, int(fields[4]))
            locks.append(Lock(wanted[fields[5]], pid, fields[3] == "WRITE", int(fields[6]), last))
    return locks


def lock_holders(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return the pids that hold a lock on each path; paths without a lock are left out."""
    found: dict[Path, list[int]] = {}
    for lock in locks_on(paths):
        pids = found.setdefault(lock.path, [])
        if lock.pid not in pids:
            pids.append(lock.pid)
    return found


def process_by_root(pid: int) -> dict[str, Any] | None:
    """Return what root shows of a process; None if it shows nothing, or if we are not separate."""
    return _ask_root(pid) if root_parent.is_separate() else None


@lru_cache(maxsize=4096)
def _ask_root(pid: int) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] | None = root_parent.ask_root("process", pid)
    except CouldNotLook:
        return None
    return found


def _identity_by_root(pid: int, number: str) -> tuple[int, int] | None:
    """Return device and inode of a file that a process has open."""
    for name, _, dev, inode in (process_by_root(pid) or {}).get("files", ()):
        if name == number and inode >= 0:
            return dev, inode
    return None
