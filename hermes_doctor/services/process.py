"""One process, held so that nothing else is ever meant by its number."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

_PROC = "/proc"


class Origin(NamedTuple):
    """How a process was started: what its successor needs to be started alike."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] | None
    """Holds secrets: never shown, never written into a receipt."""
    uid: int | None
    umask: int | None


class Held:
    """A process that is signalled through a descriptor, so that its number cannot be reused."""

    def __init__(self, pid: int, fd: int | None, ticks: int | None) -> None:
        self.pid = pid
        self.ticks = ticks
        """When it began, in the kernel's ticks, as Hermes writes it down."""
        self._fd = fd

    @property
    def doing(self) -> str:
        """The kernel's letter for what it does; empty when it is gone or cannot be asked."""
        return _stat(self.pid)[0] if self._same() else ""

    def ended(self, limit: float = 0.0) -> bool:
        """Whether it has ended, waiting for that so long."""
        if self._fd is not None:
            return bool(select.select([self._fd], [], [], max(0.0, limit))[0])
        until = time.monotonic() + limit
        while self._same():
            if time.monotonic() >= until:
                return False
            time.sleep(0.1)
        return True

    def send(self, number: int) -> None:
        """Send it a signal; one that has ended takes none."""
        with contextlib.suppress(ProcessLookupError):
            if self._fd is not None:
                signal.pidfd_send_signal(self._fd, number)
            elif self._same():
                os.kill(self.pid, number)

    def _same(self) -> bool:
        if self._fd is not None:
            return not self.ended()
        import psutil

        try:
            process = psutil.Process(self.pid)
            began = int(process.create_time() * 100)
            return process.status() != psutil.STATUS_ZOMBIE and self.ticks in (None, began)
        except (psutil.Error, OSError):
            return False


@contextmanager
def held(pid: int) -> Iterator[Held]:
    """Hold a process by its number; ProcessLookupError when there is none."""
    fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    try:
        yield Held(pid, fd, start_ticks(pid))
    finally:
        if fd is not None:
            os.close(fd)


def _stat(pid: int) -> tuple[str, int | None]:
    try:
        with open(f"{_PROC}/{pid}/stat", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return "", None


def start_ticks(pid: int) -> int | None:
    """When a process began, in the unit that Hermes uses on this system."""
    if os.path.isdir(f"{_PROC}/{os.getpid()}"):
        return _stat(pid)[1]
    import psutil

    try:
        return int(psutil.Process(pid).create_time() * 100)
    except (psutil.Error, OSError):
        return None


def origin(pid: int) -> Origin:
    """How a process was started, as far as we may see it."""
    import psutil

    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    uid = umask = None
    with contextlib.suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        argv = tuple(process.cmdline())
        # With two users at once, a program that takes on rights: whoever is not root started it.
        uid = next((one for one in process.uids() if one), 0)
        environment = process.environ()
    with (
        contextlib.suppress(OSError, ValueError),
        open(f"{_PROC}/{pid}/status", errors="replace") as file,
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
