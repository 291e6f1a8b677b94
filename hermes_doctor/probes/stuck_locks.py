"""Locks that are not let go: a writer's lock is normal for milliseconds, and a fault for longer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import file_locks
from hermes_doctor.processes.file_locks import Lock
from hermes_doctor.sqlite.snapshot import opened
from hermes_doctor.system import time_limits

PENDING, BEHIND = 0x40000000, 0x40000200
WRITER = 120
"""The byte of a -shm file that the one writer locks."""
PATIENCE, STEP = 0.6, 0.04
IDLE = 4
"""Ticks of the processor that a process which only waits may use meanwhile."""


class Stuck(NamedTuple):
    """A write lock that one process held the whole time, without getting anything written."""

    database: Path
    pid: int
    seconds: float
    stopped: bool
    """The process is halted, so it will not let go by itself."""
    working: bool = False
    """It computes, or waits for the processor or the disk: a long job, or a slow machine."""


def stuck(databases: Iterable[Path], seen: Iterable[Lock]) -> list[Stuck]:
    """Look again and again at the locks that were seen, for less than a second.

    A busy writer may hold the lock at each look and yet let go between them: what tells it from
    one that hangs is that its commits get on.
    """
    by_name = {_lock_file(path, suffix): path for path in databases for suffix in ("", "-shm")}
    waiting = {
        (by_name[lock.path], lock.pid) for lock in seen if lock.path in by_name and _writes(lock)
    }
    found: list[Stuck] = []
    started = time.monotonic()
    patience = time_limits.stretched(PATIENCE)
    marks = {path: _mark(path) for path, _ in waiting}
    spent_before = {pid: _computed(pid) for _, pid in waiting}
    working: set[int] = set()
    while waiting and (spent := time.monotonic() - started) < patience:
        time.sleep(STEP)
        held = {
            (by_name[lock.path], lock.pid) for lock in file_locks.table(by_name) if _writes(lock)
        }
        waiting = {(path, pid) for path, pid in waiting & held if _mark(path) == marks[path]}
        halted = {(path, pid) for path, pid in waiting if spent > STEP and _halted(pid)}
        found += [Stuck(path, pid, spent, stopped=True) for path, pid in sorted(halted)]
        waiting -= halted
        working |= {pid for _, pid in waiting if pid not in working and _at_work(pid)}
    spent = time.monotonic() - started
    return found + [
        Stuck(path, pid, spent, False, pid in working or _computed(pid) - spent_before[pid] > IDLE)
        for path, pid in sorted(waiting)
    ]


def _lock_file(path: Path, suffix: str) -> Path:
    try:
        real = path.resolve()
    except (OSError, RuntimeError):
        real = path
    return real.with_name(real.name + suffix)


def _writes(lock: Lock) -> bool:
    if not lock.write:
        return False
    if lock.path.name.endswith("-shm"):
        return lock.first <= WRITER <= lock.last
    return lock.first < BEHIND and lock.last >= PENDING


def _mark(path: Path) -> object:
    """What moves with every commit."""
    try:
        with opened(path) as book:
            living = book.living()
            return (living.change, living.committed) if living else book.mark()
    except (CouldNotLook, FileNotFoundError):
        return None


def _halted(pid: int) -> bool:
    return _fields(f"/proc/{pid}/stat")[:1] in (["T"], ["t"])


def _computed(pid: int) -> int:
    """Ticks of the processor that it has used so far."""
    return sum(map(int, _fields(f"/proc/{pid}/stat")[11:13]))


def _at_work(pid: int) -> bool:
    """Say whether one of its threads waits for the disk now, or for a processor."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    states = [_fields(f"/proc/{pid}/task/{one}/stat")[:1] for one in threads]
    return ["D"] in states or (["R"] in states and time_limits.factor() > 1)


def _fields(path: str) -> list[str]:
    """What the kernel says of a process or a thread, from its state on."""
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(1024)).rpartition(")")[2].split()
    except OSError:
        return []


def command(pid: int) -> str:
    """The name of a process, for people; empty when we may not know."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = os.fsdecode(file.read(64)).strip()
    except OSError:
        return ""
    return name if name.isprintable() else ""
