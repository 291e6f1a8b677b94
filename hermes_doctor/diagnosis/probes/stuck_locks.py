"""Find write locks that are not released; a lock of milliseconds is normal, a longer one is not."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import time_limits
from hermes_doctor.hermes.processes import open_files as open_files_module
from hermes_doctor.hermes.processes.open_files import Lock
from hermes_doctor.sqlite.files import open_files

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
    by_name = {_lock_file(path, suffix): path for path in databases for suffix in ("", "-shm")}
    waiting = {
        (by_name[lock.path], lock.pid) for lock in locks if lock.path in by_name and _writes(lock)
    }
    stuck_locks: list[StuckLock] = []
    started = time.monotonic()
    patience = time_limits.stretch(PATIENCE)
    marks = {path: _mark(path) for path, _ in waiting}
    spent_before = {pid: _computed(pid) for _, pid in waiting}
    working: set[int] = set()
    while waiting and (spent := time.monotonic() - started) < patience:
        time.sleep(STEP)
        held = {
            (by_name[lock.path], lock.pid)
            for lock in open_files_module.locks_on(by_name)
            if _writes(lock)
        }
        waiting = {(path, pid) for path, pid in waiting & held if _mark(path) == marks[path]}
        halted = {(path, pid) for path, pid in waiting if spent > STEP and _halted(pid)}
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


def _lock_file(path: Path, suffix: str) -> Path:
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        real = path
    return Path(f"{real}{suffix}")  # also if it is a link to /


def _writes(lock: Lock) -> bool:
    if not lock.write:
        return False
    if lock.path.name.endswith("-shm"):
        return lock.first <= WRITER <= lock.last
    return lock.first < BEHIND and lock.last >= PENDING


def _mark(path: Path) -> object:
    """Return a value that changes with every commit."""
    try:
        with open_files(path) as book:
            living = book.shm_header()
            return (living.change, living.committed) if living else book.mark()
    except (CouldNotLook, FileNotFoundError):
        return None


def _halted(pid: int) -> bool:
    return _fields(f"/proc/{pid}/stat")[:1] in (["T"], ["t"])


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
    return ["D"] in states or (["R"] in states and time_limits.factor() > 1)


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
