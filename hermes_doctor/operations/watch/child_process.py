"""Runs one piece of work in a short-lived copy of the watch's process, and gets its result back.

So the memory that an examination takes, the threads of one that hangs, and the end of one that the
kernel kills are not those of the watch. The copy ends with the watch.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import limits, transfer
from hermes_doctor.core.system.files import MEGABYTE, close_others
from hermes_doctor.operations.history import observation, when_to_record
from hermes_doctor.operations.watch import events, state

MODULES = tuple(
    module_type.__name__ for module_type in (events, observation, when_to_record, state)
)
"""Whose values a result may have."""
MOST_BYTES = 32 * MEGABYTE
"""The largest result."""
END = b"\n"
"""What ends a result; JSON has it nowhere else. A process that hangs never closes its pipe."""
SLICE = 0.25
"""Seconds between two looks at what else there is to do while a result is awaited."""
UNKILLABLE = 5.0
"""Seconds after which a killed process counts as hanging in the kernel."""
_DIE_WITH_PARENT = 1
"""The option of prctl(2) for the signal that a process gets when its parent ends."""


class ChildFailed(Exception):
    """Says why the work ended without a result."""


class ChildProcesses:
    """Starts the processes of one watch, one after the other."""

    def __init__(self) -> None:
        self._stuck: int | None = None
        """A process that hangs in the kernel although it was killed."""
        self._prctl: Any = None

    def run(
        self,
        work: Callable[[], object],
        *,
        limit: float | None = None,
        keep: Sequence[int] = (),
        idle: Callable[[int], None] | None = None,
    ) -> Any:
        """Return the result of `work`, which may be whatever `transfer` passes.

        Raise ChildFailed if there is none, and CouldNotLook if no process can be started or it took
        longer than `limit` seconds. The process keeps only the descriptors in `keep`. While it
        works, `idle` is called now and then with its id. Whatever ends this call ends the process.
        """
        # Raise while an earlier process hangs, so that they do not pile up.
        if self._stuck is not None and _status(self._stuck) is not None:
            self._stuck = None
        if self._stuck is not None:
            raise CouldNotLook("the disk does not answer: an earlier check still waits for it")
        reading, writing = os.pipe()
        parent, prctl = os.getpid(), self._load_prctl()
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                sys.stdout.flush()  # else the copy would have a copy of what is not written yet
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            why = os.strerror(error.errno or 0).lower()
            raise CouldNotLook("could not start a process ({reason})", reason=why) from None
        if pid == 0:
            _live(work, writing, keep, parent, prctl)
        data = None
        try:
            os.close(writing)
            data = _read(reading, pid, limit, idle)
        finally:
            os.close(reading)
            status = self._end(pid, kill=data is None)
        return _result(data, status)

    def result_or_reason(self, work: Callable[[], object]) -> Any:
        """Return the result of `work`; if there is none, why, as a text."""
        try:
            return self.run(work)
        except (ChildFailed, CouldNotLook) as why:
            return str(why)

    def _end(self, pid: int, *, kill: bool) -> int:
        """Wait until a process is gone, and return its status; kill it at once or after a while.

        What it has started is killed with it.
        """
        for by_force in (kill, True):
            if by_force:
                for send in (os.killpg, os.kill):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        send(pid, signal.SIGKILL)
            until = time.monotonic() + UNKILLABLE
            while time.monotonic() < until:
                if (status := _status(pid)) is not None:
                    return status
                time.sleep(0.001)
        self._stuck = pid
        return 0

    def _load_prctl(self) -> Any:
        """The function prctl(2), loaded before the first copy; None if there is none."""
        if self._prctl is None and sys.platform == "linux":
            import ctypes

            self._prctl = ctypes.CDLL(None).prctl
        return self._prctl


def _status(pid: int) -> int | None:
    """How a process of ours has ended; None if it still runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return 0
    return status if ended == pid else None


def _read(
    reading: int, pid: int, limit: float | None, idle: Callable[[int], None] | None
) -> bytearray:
    """Read to the end of the result; raise CouldNotLook if that takes too long or is too much."""
    data, clock = bytearray(), limits.Stopwatch()
    while True:
        if idle is not None:
            idle(pid)
        if select.select([reading], [], [], SLICE)[0]:
            chunk = os.read(reading, MEGABYTE)
            data += chunk
            if not chunk or chunk.endswith(END):
                return data
            if len(data) > MOST_BYTES:
                raise CouldNotLook("the result of the check is too large")
        elif limit is not None and clock.read() > limit:
            raise CouldNotLook("the check took longer than {seconds:g} s", seconds=limit)


def _result(data: bytearray, status: int) -> Any:
    """The result in what a process sent; raise ChildFailed if it ended without one."""
    if data.endswith(END):
        try:
            return transfer.parse(bytes(data), MODULES)
        except ValueError:
            raise ChildFailed("its process sent a damaged result") from None
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in [*signal.Signals] else f"signal {number}"
        more = ", perhaps because memory ran out" if number == signal.SIGKILL else ""
        raise ChildFailed(f"its process was killed ({name}{more})")
    raise ChildFailed("its process ended without a result")


def _live(
    work: Callable[[], object], writing: int, keep: Sequence[int], parent: int, prctl: Any
) -> None:
    """Do the work in the copy of the process; never returns."""
    try:
        signal.set_wakeup_fd(-1)  # the pipe is the watch's
        os.setpgid(0, 0)  # Ctrl-C reaches the watch, which decides; it can kill all of us at once
        if prctl is not None:
            prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() == parent:
            close_others(writing, *keep)
            data = transfer.dump(work(), MODULES) + END
            left = memoryview(data)
            while left:
                left = left[os.write(writing, left) :]
    except BaseException:  # noqa: BLE001 (the process ends without a result, which is reported)
        os._exit(1)
    finally:
        os._exit(0)
