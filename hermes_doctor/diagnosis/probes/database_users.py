"""Find the processes that have databases of a home open, even deleted ones, or hold their locks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes_doctor.core.home import SIDECARS
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import limits, open_files
from hermes_doctor.core.system.open_files import DELETED, Lock, open_file_of_process
from hermes_doctor.hermes.processes import gateway_processes
from hermes_doctor.sqlite import files as sqlite_files
from hermes_doctor.sqlite.header import MAGIC


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
    locked: tuple[open_files.Lock, ...] = ()

    def holders(self, path: Path) -> tuple[int, ...]:
        """Return the pids that have this database or one of its sidecar files open or locked.

        0 stands for a process that we may not see.
        """
        path = _real(path)
        names = {path.with_name(path.name + suffix) for suffix in ("", *SIDECARS)}
        identities = {found for name in names if (found := identity(name))}
        pids = {open_file.pid for open_file in self.open if open_file.identity in identities}
        pids |= {lock.pid for lock in self.locked if lock.path in names}
        return tuple(sorted(pids))


def find(paths: Iterable[Path]) -> DatabaseUsers:
    """Scan all processes and the kernel's lock table once."""
    real = {_real(path) for path in paths}
    folders = tuple({os.path.join(path.parent, "") for path in real})
    own = os.getpid()
    found = [
        file
        for pid in gateway_processes.all_pids()
        if pid != own
        for file in _of(pid, folders)
        if not gateway_processes.is_our_reader(pid)
    ]
    names = [path.with_name(path.name + suffix) for path in real for suffix in ("", *SIDECARS)]
    held = tuple(lock for lock in open_files.locks_on(names) if lock.pid != own)
    return DatabaseUsers(tuple(found), held)


def _of(pid: int, folders: tuple[str, ...]) -> Iterator[OpenFile]:
    """Yield the databases below the folders that a process has open."""
    for descriptor in open_files.descriptors(pid) or ():
        if ".db" not in descriptor.path or not descriptor.path.startswith(folders):
            continue
        with contextlib.suppress(OSError):
            if descriptor.number:
                known = open_files.identity(pid, descriptor.number)
            else:
                st = os.stat(descriptor.target)
                known = st.st_dev, st.st_ino
            yield OpenFile(
                pid,
                descriptor.number,
                Path(descriptor.path),
                descriptor.path != descriptor.target,
                known,
            )


def writers(paths: Iterable[Path]) -> dict[Path, list[int]]:
    """Return which processes have these files open for writing."""
    names = {str(_real(path)): path for path in paths}
    found: dict[Path, list[int]] = {}
    for pid in gateway_processes.all_pids() if names else ():
        for fd, target in open_files.descriptors(pid) or ():
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
    except PermissionError:
        seen = (open_files.process_by_root(pid) or {}).get("details", {}).get(fd, "")
        known = [line.split()[1] for line in seen.splitlines() if line.startswith("flags:")]
        return not known or int(known[0], 8) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, ValueError, IndexError, StopIteration):
        return True


def is_still_open(file: OpenFile) -> bool:
    """Tell whether the process still has the file open, and still deleted if it was."""
    try:
        target = os.readlink(f"/proc/{file.pid}/fd/{file.fd}")
        known = open_files.identity(file.pid, file.fd)
    except PermissionError:
        return open_files._identity_by_root(file.pid, file.fd) == file.identity
    except OSError:
        return False
    return known == file.identity and target.endswith(DELETED) == file.deleted


def _real(path: Path) -> Path:
    try:
        real = path.resolve()
        return real if real.name else path  # a link to / has no files beside it
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
    """Return the lost files; checked twice, because a file being closed looks the same.

    `paths` are all places where the home may have a database.
    """
    if not users.open:
        return []
    places = {path: _real(path) for path in paths}
    others = {*places, *places.values()}
    seen = [
        found
        for path, real in places.items()
        for found in _lost(users, path, real, others, set(gateways))
    ]
    seen.sort(key=lambda one: one[1].cause == "renamed")  # a deleted file has no other name
    if seen:
        time.sleep(0.05)
    kept: dict[tuple[Path, int, str], LostFile] = {}
    for file, lost_file in seen:
        if is_still_open(file):
            kept.setdefault((lost_file.database, lost_file.pid, lost_file.kind), lost_file)
    return sorted(kept.values(), key=lambda one: (one.kind, one.database, one.pid))


def _lost(
    all_users: DatabaseUsers, path: Path, real: Path, others: set[Path], gateways: set[int]
) -> Iterator[tuple[OpenFile, LostFile]]:
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
        elif file.pid in users - current and _is_renamed(file, real, others, missing=now is None):
            yield file, LostFile(path, file.pid, file.fd, file.path, "database", "renamed")


def _is_renamed(file: OpenFile, real: Path, others: set[Path], *, missing: bool) -> bool:
    """Whether an open file is the database under another name.

    If the database is missing, the new name may be any that a person gives it, also in a folder of
    the home; then the tables show whether it is. Profiles and boards have databases of their own.
    """
    path = file.path
    if path in others or path.name.endswith((*SIDECARS, ".lock")):
        return False
    named = path.parent == real.parent and path.name.startswith(real.name + ".")
    if not named and (not missing or not _may_be_named(path, real)):
        return False
    try:
        fd = open_file_of_process(file.pid, file.fd, real)
    except (OSError, CannotFix):
        return named
    try:
        return os.pread(fd, len(MAGIC), 0) == MAGIC and (named or _has_tables_of(fd, path, real))
    finally:
        os.close(fd)


def _may_be_named(path: Path, real: Path) -> bool:
    """Whether a person may have given this name to a database of the home."""
    if real.parent not in path.parents or real.stem not in path.name:
        return False
    if real.parent.parts[-3:-1] == ("kanban", "boards"):
        return False
    return not {"profiles", "boards"} & {*path.relative_to(real.parent).parts}


def _has_tables_of(fd: int, path: Path, real: Path) -> bool:
    """Whether an open file at `path` has the tables that Hermes creates in the database `real`.

    A young database has them only in its log, which keeps the old name.
    """
    from hermes_doctor.hermes.knowledge import atlas
    from hermes_doctor.sqlite import schema

    kind = next(
        (database for database in atlas.DATABASES if Path(database).name == real.name), None
    )
    plan = atlas.blueprint(kind, atlas.releases(kind)[0]) if kind else None
    if plan is None:
        return False
    try:
        found = schema.table_names(fd, path.with_name(path.name + "-wal"))
    except CouldNotLook:
        return False
    wanted = {table.name for table in plan.tables.values() if not table.created_on_demand}
    return not found or wanted <= found


PENDING, BEHIND = 0x40000000, 0x40000200
WRITER = 120
"""The byte of a -shm file that the only writer locks."""
PATIENCE, STEP = 0.6, 0.04
IDLE = 4
"""Processor ticks that a merely waiting process may use in the meantime."""


class StuckLock(NamedTuple):
    """A write lock that one process held during the whole check without a commit."""

    database: Path
    pid: int
    seconds: float
    stopped: bool
    """The process is halted, so it will not release the lock by itself."""
    working: bool = False
    """It computes, or waits for the processor or the disk: a long job or a slow machine."""


def find_stuck(databases: Iterable[Path], locks: Iterable[Lock]) -> list[StuckLock]:
    """Check the given locks repeatedly for less than a second.

    A busy writer may hold the lock each time and still release it in between. Its commits progress,
    those of a stuck writer do not.
    """
    by_name = {
        Path(f"{_real(path)}{suffix}"): path for path in databases for suffix in ("", "-shm")
    }
    waiting = {
        (by_name[lock.path], lock.pid)
        for lock in locks
        if lock.path in by_name and _is_write_lock(lock)
    }
    stuck_locks: list[StuckLock] = []
    started = time.monotonic()
    patience = limits.stretch(PATIENCE)
    marks = {path: _mark(path) for path, _ in waiting}
    spent_before = {pid: _computed(pid) for _, pid in waiting}
    working: set[int] = set()
    while waiting and (spent := time.monotonic() - started) < patience:
        time.sleep(STEP)
        held = {
            (by_name[lock.path], lock.pid)
            for lock in open_files.locks_on(by_name)
            if _is_write_lock(lock)
        }
        waiting = {(path, pid) for path, pid in waiting & held if _mark(path) == marks[path]}
        halted = {
            (path, pid)
            for path, pid in waiting
            if spent > STEP and (_fields(f"/proc/{pid}/stat")[:1] in (["T"], ["t"]))
        }
        stuck_locks += [StuckLock(path, pid, spent, stopped=True) for path, pid in sorted(halted)]
        waiting -= halted
        working |= {pid for _, pid in waiting if pid not in working and _at_work(pid)}
    spent = time.monotonic() - started
    return stuck_locks + [
        StuckLock(
            path, pid, spent, False, pid in working or _computed(pid) - spent_before[pid] > IDLE
        )
        for path, pid in sorted(waiting)
    ]


def _is_write_lock(lock: Lock) -> bool:
    if not lock.write:
        return False
    if lock.path.name.endswith("-shm"):
        return lock.first <= WRITER <= lock.last
    return lock.first < BEHIND and lock.last >= PENDING


def _mark(path: Path) -> object:
    """Return a value that changes with every commit."""
    try:
        with sqlite_files.open_files(path) as book:
            living = book.shm_header()
            return (living.change, living.committed) if living else book.mark()
    except (CouldNotLook, FileNotFoundError):
        return None


def _computed(pid: int) -> int:
    """Return the processor ticks that the process has used so far."""
    return sum(map(int, _fields(f"/proc/{pid}/stat")[11:13]))


def _at_work(pid: int) -> bool:
    """Tell whether one of its threads waits for the disk or for a processor."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    states = [_fields(f"/proc/{pid}/task/{thread}/stat")[:1] for thread in threads]
    return ["D"] in states or (["R"] in states and limits.factor() > 1)


def _fields(path: str) -> list[str]:
    """Return the kernel's stat fields of a process or thread, starting with its state."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(1024)).rpartition(")")[2].split()
    except OSError:
        return []


def command(pid: int) -> str:
    """Return the name of a process; empty if we may not read it."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = os.fsdecode(file.read(64)).strip()
    except OSError:
        return ""
    return name if name.isprintable() else ""
