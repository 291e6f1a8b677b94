"""Find the processes that have databases of a home open, even deleted or renamed ones."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.home import SIDECARS
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.processes import descriptors, file_locks, gateway_processes
from hermes_doctor.processes.descriptors import DELETED


class OpenFile(NamedTuple):
    """A file that a process has open."""

    pid: int
    fd: str
    path: Path
    """Its path, or the path it had before it was deleted."""
    deleted: bool
    identity: tuple[int, int]
    """Device and inode."""


class DatabaseUsers(NamedTuple):
    """The open files and locks that other processes have on a home's databases."""

    open: tuple[OpenFile, ...] = ()
    locked: tuple[file_locks.Lock, ...] = ()

    def holders(self, path: Path) -> tuple[int, ...]:
        """Return the pids that have this database or one of its sidecar files open or locked.

        0 stands for a process that we may not see.
        """
        path = _real(path)
        names = {path.with_name(path.name + suffix) for suffix in ("", *SIDECARS)}
        identities = {found for name in names if (found := identity(name))}
        pids = {one.pid for one in self.open if one.identity in identities}
        pids |= {one.pid for one in self.locked if one.path in names}
        return tuple(sorted(pids))


def find(paths: Iterable[Path]) -> DatabaseUsers:
    """Scan all processes and the kernel's lock table once."""
    real = {_real(path) for path in paths}
    folders = {path.parent for path in real}
    own = os.getpid()
    found = [
        file
        for pid in gateway_processes.all_pids()
        if pid != own
        for file in _of(pid)
        if file.path.parent in folders and not gateway_processes.is_our_reader(pid)
    ]
    names = [path.with_name(path.name + suffix) for path in real for suffix in ("", *SIDECARS)]
    held = tuple(lock for lock in file_locks.locks_on(names) if lock.pid != own)
    return DatabaseUsers(tuple(found), held)


def _of(pid: int) -> Iterator[OpenFile]:
    for one in descriptors.of(pid) or ():
        if ".db" not in one.path or not one.path.startswith("/"):
            continue
        with contextlib.suppress(OSError):
            st = os.stat(f"/proc/{pid}/fd/{one.number}" if one.number else one.target)
            deleted = one.path != one.target
            yield OpenFile(pid, one.number, Path(one.path), deleted, (st.st_dev, st.st_ino))


def writers(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return which processes have these files open for writing."""
    names = {str(_real(path)): path for path in paths}
    found: dict[Path, list[int]] = {}
    for pid in gateway_processes.all_pids() if names else ():
        for fd, target in descriptors.of(pid) or ():
            if target in names and _writes(pid, fd):
                pids = found.setdefault(names[target], [])
                if pid not in pids:
                    pids.append(pid)
    return found


def _writes(pid: int, fd: str) -> bool:
    """Tell whether a descriptor was opened for writing; True if unsure."""
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}") as file:
            flags = next(line for line in file if line.startswith("flags:"))
        return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, ValueError, IndexError, StopIteration):
        return True


def is_still_open(file: OpenFile) -> bool:
    """Tell whether the process still has the file open, and still deleted if it was."""
    try:
        target = os.readlink(f"/proc/{file.pid}/fd/{file.fd}")
        st = os.stat(f"/proc/{file.pid}/fd/{file.fd}")
    except OSError:
        return False
    same = (st.st_dev, st.st_ino) == file.identity
    return same and target.endswith(DELETED) == file.deleted


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path; None if there is none."""
    try:
        st = os.stat(path)
    except OSError:
        return None
    return st.st_dev, st.st_ino


class LostFile(NamedTuple):
    """A file that a process still uses although it is no longer at its path."""

    database: Path
    pid: int
    fd: str
    path: Path
    kind: str
    """"database" or "log"."""
    cause: str
    """"deleted", "replaced" or "renamed"."""


def lost_files(
    users: DatabaseUsers, paths: Iterable[Path], gateways: Iterable[int]
) -> list[LostFile]:
    """Return the lost files; checked twice, because a file being closed looks the same."""
    seen = [found for path in paths for found in _lost(users, path, set(gateways))]
    if seen:
        time.sleep(0.05)
    kept: dict[tuple[Path, int, str], LostFile] = {}
    for file, found in seen:
        if is_still_open(file):
            kept.setdefault((found.database, found.pid, found.kind), found)
    return sorted(kept.values(), key=lambda one: (one.kind, one.database, one.pid))


def _lost(
    all_users: DatabaseUsers, path: Path, gateways: set[int]
) -> Iterator[tuple[OpenFile, LostFile]]:
    real = _real(path)
    now = identity(real)
    logs = {real.with_name(real.name + suffix) for suffix in ("-wal", "-shm")}
    current = {file.pid for file in all_users.open if file.identity == now}
    users = {file.pid for file in all_users.open if file.path in logs} | gateways
    for file in all_users.open:
        if file.deleted and file.path == real:
            fate = "replaced" if now else "deleted"
            yield file, LostFile(path, file.pid, file.fd, file.path, "database", fate)
        elif file.deleted and file.path in logs:
            yield file, LostFile(path, file.pid, file.fd, file.path, "log", "deleted")
        elif (
            file.path.name.startswith(real.name + ".")
            and file.path.parent == real.parent
            and not file.path.name.endswith(".lock")
            and file.pid in users - current
        ):
            yield file, LostFile(path, file.pid, file.fd, file.path, "database", "renamed")
