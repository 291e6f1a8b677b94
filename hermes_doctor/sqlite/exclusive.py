"""Lock out all SQLite processes while a database is copied and replaced."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.model import Trouble

_FIRST, _LENGTH = 0x40000000, 512
"""The bytes that SQLite locks: pending, reserved and shared. A connection in WAL mode holds a
shared lock as long as it is open, so the process that holds all of them is the only one."""


@contextmanager
def exclusive_access(path: Path) -> Iterator[None]:
    """Hold SQLite's locks on the database; raise if it is open elsewhere. Writes nothing.

    The lock belongs to the descriptor (SQLite's own locks belong to the process), so reading and
    closing the file elsewhere in this process does not release it. On systems without such locks
    only the check for open files protects the database.

    A connection without a write-ahead log holds no lock between transactions, so the kernel is
    also asked whether any process has the file open for writing (`has_writer`). Not detected: such
    a connection in another container on a drive without leases, or where we may not ask (another
    user's file without the capability CAP_LEASE).
    """
    if has_writer(path):
        raise _in_use(path)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # read-only or missing: the caller's next step reports it better
        yield
        return
    try:
        _lock(fd, path)
        yield
    finally:
        os.close(fd)


def in_use(path: Path) -> bool:
    """Whether any process has the database open, by its locks; also in another container.

    A connection that uses no write-ahead log holds no lock between transactions.
    """
    return process_using(path) is not None


def is_being_written(path: Path) -> bool:
    """Whether a process may be writing to a database that uses no write-ahead log.

    Before it writes to the file, it must hold the pending lock and then all shared ones. A process
    that only reads, or that has begun a transaction and written nothing yet, does not hold them.
    """
    pending, shared = (_FIRST, 1), (_FIRST + 2, _LENGTH - 2)
    return any(_holder(path, fcntl.F_RDLCK, *place) is not None for place in (pending, shared))


def process_using(path: Path) -> int | None:
    """A process that has the database open, by its locks; 0 if its pid is not visible to us."""
    return _holder(path, fcntl.F_WRLCK, _FIRST, _LENGTH)


def _holder(path: Path, wanted: int, first: int, length: int) -> int | None:
    """A process that keeps us from such a lock on these bytes; the lock is not taken."""
    command = getattr(fcntl, "F_OFD_GETLK", None)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if command is None:
            return None
        asked = struct.pack("hhqqi", wanted, os.SEEK_SET, first, length, 0)
        kind, *_, pid = struct.unpack("hhqqi", fcntl.fcntl(fd, command, asked))
        return None if kind == fcntl.F_UNLCK else int(pid)
    except OSError:  # a drive without locks
        return None
    finally:
        os.close(fd)


def has_writer(path: Path) -> bool | None:
    """Whether any process has the file open for writing; None if that cannot be determined.

    This also finds processes in other containers, which /proc does not show. The kernel grants a
    lease on a file only while no process has it open for writing. The lease is released at once
    and blocks nobody: a process that opens the file at that moment waits, where a lock would make
    it fail.
    """
    command, deliver = getattr(fcntl, "F_SETLEASE", None), getattr(fcntl, "F_SETSIG", None)
    if command is None or deliver is None:
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.fcntl(fd, deliver, signal.SIGURG)  # the default signal would kill us
        fcntl.fcntl(fd, command, fcntl.F_RDLCK)
    except BlockingIOError:
        return None if _is_remote(path) else True
    except OSError:  # another user's file, or a drive without leases
        return None
    else:
        return False
    finally:
        os.close(fd)  # this also releases the lease


def _is_remote(path: Path) -> bool:
    """Whether a file is on a network drive, which may refuse a lease without any writer."""
    try:
        number = os.stat(path).st_dev
        table = Path("/proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return False
    wanted = f"{os.major(number)}:{os.minor(number)}"
    mounts = [line for line in table.splitlines() if line.split(" ")[2:3] == [wanted]]
    return any(line.partition(" - ")[2].startswith(_REMOTE) for line in mounts)


_REMOTE = ("nfs", "cifs", "smb", "ceph", "9p", "afs", "fuse")
"""Prefixes of the file system types of network drives."""


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
        "{path} is in use by another process. Nothing was changed. Stop the gateway (and any other "
        "Hermes on this home) first, then try again.",
        path=path.name,
    )
