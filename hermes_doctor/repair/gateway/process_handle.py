"""A handle to one gateway that is stopped, the note for it, and the lock that keeps others out."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk, root_parent
from hermes_doctor.core.system.files import read
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.hermes.processes import process_stat
from hermes_doctor.hermes.processes.home_of import LOCK
from hermes_doctor.hermes.processes.process_stat import pid_in_namespace


class Origin(NamedTuple):
    """How a process was started, so that its successor can be started the same way."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] | None
    """Contains secrets: never shown, never written into a receipt."""
    uid: int | None
    umask: int | None


class ProcessHandle:
    """A process that is signalled through a pidfd, so no other process with its id is hit."""

    def __init__(self, pid: int, fd: int | None, ticks: int | None) -> None:
        self.pid = pid
        self.ticks = ticks
        """Its start time in kernel ticks, as Hermes records it."""
        self._fd = fd

    @property
    def state(self) -> str:
        """The kernel's state letter; empty if the process is gone or cannot be read."""
        seen = process_stat.stat(self.pid) if self._same() else None
        return seen.doing if seen else ""

    def wait_for_end(self, limit: float = 0.0) -> bool:
        """Whether it has ended, after waiting at most `limit` seconds."""
        if self._fd is not None:
            return bool(select.select([self._fd], [], [], max(0.0, limit))[0])
        until = time.monotonic() + limit
        while self._same():
            if time.monotonic() >= until:
                return False
            time.sleep(0.1)
        return True

    def send(self, number: int) -> None:
        """Send it a signal; do nothing if it has ended."""
        try:
            with contextlib.suppress(ProcessLookupError):
                if self._fd is not None:
                    signal.pidfd_send_signal(self._fd, number)
                elif self._same():
                    os.kill(self.pid, number)
        except PermissionError:
            if not root_parent.is_separate():
                raise
            root_parent.ask_root("signal_gateway", self.pid, self.ticks, number)

    def _same(self) -> bool:
        if self._fd is not None:
            return not self.wait_for_end()
        seen = process_stat.stat(self.pid)
        return seen is not None and seen.doing != "Z" and self.ticks in (None, seen.start_time)


@contextmanager
def open_process(pid: int) -> Iterator[ProcessHandle]:
    """Open a handle to a process by its id; raise ProcessLookupError if there is none."""
    fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    seen = process_stat.stat(pid)
    try:
        yield ProcessHandle(pid, fd, seen.start_time if seen else None)
    finally:
        if fd is not None:
            os.close(fd)


def read_origin(pid: int) -> Origin:
    """Read how a process was started, as far as permissions allow."""
    import psutil

    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    uid = umask = None
    with contextlib.suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        argv = tuple(process.cmdline())
        # A process with two user ids is a setuid program: the one that is not root started it.
        uid = next((one for one in process.uids() if one), 0)
        environment = process.environ()
    with (
        contextlib.suppress(OSError, ValueError),
        open(f"/proc/{pid}/status", errors="replace") as file,
    ):
        for line in file:
            if line.startswith("Umask:"):
                umask = int(line.split()[1], 8)
    return Origin(argv, environment, uid, umask)


def ancestors(pid: int | None = None) -> list[int]:
    """The parent, grandparent and so on of a process, or our own."""
    import psutil

    try:
        return [parent.pid for parent in psutil.Process(pid).parents()]
    except (psutil.Error, OSError):
        return [os.getppid()] if pid is None else []


PLANNED_STOP = ".gateway-planned-stop.json"


def announce_stop(home: Home, process: ProcessHandle) -> None:
    """Tell Hermes that the SIGTERM which follows is planned; else the stop counts as a failure.

    Hermes reads the file when the signal arrives, and removes it. The file names one process by id
    and start time, and is valid for a minute. A failure to write it does not prevent the stop.
    """
    note = {
        "target_pid": pid_in_namespace(process.pid),
        "target_start_time": process.ticks,
        "stopper_pid": os.getpid(),
        "written_at": datetime.now(UTC).isoformat(),
    }
    with contextlib.suppress(OSError):  # a full disk; the gateway then logs an unplanned signal
        disk.save(home / PLANNED_STOP, json.dumps(note).encode())


def clear_announcement(home: Home, number: int) -> None:
    """Remove the file if the process never read it; `number` is the id in its own namespace."""
    with contextlib.suppress(OSError, CouldNotLook, ValueError, TypeError, KeyError):
        if json.loads(read(home / PLANNED_STOP, 4096)[0])["target_pid"] == number:
            disk.remove(home / PLANNED_STOP)


class StartLock:
    """Holds gateway.lock, so that no gateway can start while its files change.

    A loop in a shell starts a gateway again as soon as one ends, and nothing can tell it to wait. A
    gateway that starts and finds the lock taken ends at once, before it opens a platform.
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self.taken_at: datetime | None = None
        """When it was last taken."""
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock unless another process holds it; return whether it is ours."""
        if self._fd is not None or sys.platform == "win32":
            return self._fd is not None
        import fcntl

        path = self.home / LOCK
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            with as_owner_of(path) as here:
                fd = os.open(here, flags, disk.FILE_MODE)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return False
        self._fd, self.taken_at = fd, datetime.now(UTC)
        return True

    def release(self) -> None:
        """Let gateways start again."""
        fd, self._fd = self._fd, None
        if fd is not None:
            import fcntl

            fcntl.flock(fd, fcntl.LOCK_UN)  # a worker may still have a copy of the descriptor
            os.close(fd)
