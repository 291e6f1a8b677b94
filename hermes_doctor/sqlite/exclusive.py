"""Keeps every SQLite process out of a database while it is copied and replaced."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.model import Trouble

_FIRST, _LENGTH = 0x40000000, 512
"""The bytes that SQLite locks: pending, reserved and shared. A connection in WAL mode holds a
shared one for as long as it is open, so whoever has all of them is alone."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the database's own lock; raises when somebody has it open, changes nothing on disk.

    The lock belongs to the descriptor (not to the process, as SQLite's own do), so that
    reading the file elsewhere in this process does not let go of it. Where the system has no
    such locks, only the look at open files stands guard.

    A connection without a write-ahead log holds no lock between its transactions, so the kernel is
    also asked whether anybody has the file open for writing (`has_writer`). What is not seen: such
    a connection of another container on a drive without leases, or where we may not ask (another
    user's file without the capability CAP_LEASE).
    """
    if has_writer(path):
        raise _in_use(path)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # read-only or gone: what follows will say so better
        yield
        return
    try:
        _lock(fd, path)
        yield
    finally:
        os.close(fd)


def in_use(path: Path) -> bool:
    """Whether any process has the database open, by its locks; also one of another container.

    A connection to a database without a log holds none between its transactions.
    """
    return user_of(path) is not None


def user_of(path: Path) -> int | None:
    """A process that has the database open, by its locks; 0 for one that we cannot see."""
    command = getattr(fcntl, "F_OFD_GETLK", None)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if command is None:
            return None
        asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _FIRST, _LENGTH, 0)
        kind, *_, pid = struct.unpack("hhqqi", fcntl.fcntl(fd, command, asked))
        return None if kind == fcntl.F_UNLCK else int(pid)
    except OSError:  # a drive without locks
        return None
    finally:
        os.close(fd)


def has_writer(path: Path) -> bool | None:
    """Whether any process has a file open to write into it; None when that cannot be asked.

    Also one of another container, which no table shows. The kernel grants a lease on a file only
    while nobody writes to it. It is given back at once and keeps nobody out: who opens the file
    at that very moment waits for it to be back, where a lock would turn them away.
    """
    command, deliver = getattr(fcntl, "F_SETLEASE", None), getattr(fcntl, "F_SETSIG", None)
    if command is None or deliver is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.fcntl(fd, deliver, signal.SIGURG)  # the usual one for a broken lease would end us
        fcntl.fcntl(fd, command, fcntl.F_RDLCK)
    except BlockingIOError:
        return None if _is_remote(path) else True
    except OSError:  # another user's file, or a drive without leases
        return None
    else:
        return False
    finally:
        os.close(fd)  # and the lease with it


def _is_remote(path: Path) -> bool:
    """Whether a file is on a network drive, which may refuse a lease although nobody writes."""
    try:
        number = os.stat(path).st_dev
        table = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return False
    wanted = f"{os.major(number)}:{os.minor(number)}"
    mounts = [line for line in table.splitlines() if line.split(" ")[2:3] == [wanted]]
    return any(line.partition(" - ")[2].startswith(_REMOTE) for line in mounts)


_REMOTE = ("nfs", "cifs", "smb", "ceph", "9p", "afs", "fuse")
"""How the types of such drives begin."""


def _lock(fd: int, path: Path) -> None:
    command = getattr(fcntl, "F_OFD_SETLK", None)
    if command is None:
        return
    wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _FIRST, _LENGTH, 0)
    try:
        fcntl.fcntl(fd, command, wanted)
    except (BlockingIOError, PermissionError):
        raise _in_use(path) from None
    except OSError:  # a drive without locks
        return


def _in_use(path: Path) -> Trouble:
    return Trouble(
        f"{path.name} is in use by another process. Nothing was changed. Stop the gateway "
        f"(and any other Hermes on this home) first, then try again."
    )
