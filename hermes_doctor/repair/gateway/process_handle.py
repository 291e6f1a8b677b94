"""Handle to one process, safe against reuse of its process id."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.system import root_parent
from hermes_doctor.hermes.processes import process_stat


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
