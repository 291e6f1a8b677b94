"""Locks that are not let go: a writer's lock is normal for milliseconds, and a fault for longer."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes import locks
from hermes_doctor.probes.locks import Lock
from hermes_doctor.sqlite.snapshot import opened
from hermes_doctor.values import NamedTuple

PENDING, BEHIND = 0x40000000, 0x40000200
WRITER = 120
"""The byte of a -shm file that the one writer locks."""
PATIENCE, STEP = 0.6, 0.04


class Stuck(NamedTuple):
    """A write lock that one process held the whole time, without getting anything written."""

    database: Path
    pid: int
    seconds: float
    stopped: bool
    """The process is halted, so it will not let go by itself."""


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
    marks = {path: _mark(path) for path, _ in waiting}
    while waiting and (spent := time.monotonic() - started) < PATIENCE:
        time.sleep(STEP)
        held = {(by_name[lock.path], lock.pid) for lock in locks.table(by_name) if _writes(lock)}
        waiting = {(path, pid) for path, pid in waiting & held if _mark(path) == marks[path]}
        halted = {(path, pid) for path, pid in waiting if spent > STEP and _halted(pid)}
        found += [Stuck(path, pid, spent, stopped=True) for path, pid in sorted(halted)]
        waiting -= halted
    spent = time.monotonic() - started
    return found + [Stuck(path, pid, spent, stopped=False) for path, pid in sorted(waiting)]


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
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read(512)
    except OSError:
        return False
    return text[text.rindex(b")") + 2 :][:1] in (b"T", b"t")


def command(pid: int) -> str:
    """The name of a process, for people; empty when we may not know."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = os.fsdecode(file.read(64)).strip()
    except OSError:
        return ""
    return name if name.isprintable() else ""
