"""Limit the time and the memory that this process takes, and say which drive does not answer.

Every limit of a probe guards against something that never answers: a dead network drive, a
service manager that hangs. Measured by the clock alone, such a limit would also end probes that
only wait for the processor. So time is measured in the seconds of an idle machine: while several
processes share each processor, the time counts less by the same factor.

The kernel enforces the limit of memory while this process works on a home, so that code that needs
too much gets a MemoryError instead of taking the memory of the bot. It applies to the data of a
process and not to mapped files.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator

from hermes_doctor.core.message import Message, duration, text
from hermes_doctor.core.system.files import MEGABYTE, StrPath, size

MOST = 20.0
"""The highest factor."""
EXTRA = 60.0
"""The most additional seconds on a busy machine: so that a real hang also ends there."""
PATIENCE = 3.0
"""The highest factor for a whole command."""
SLICE = 0.1
"""Seconds of one wait, after which the factor is measured again."""
_FRESH = 0.05
"""Seconds for which a measured factor is used."""
_measured = (0.0, 1.0)


def factor() -> float:
    """Return how many times longer work takes now than on an idle machine, from 1 to MOST."""
    global _measured
    now = time.monotonic()
    at, known = _measured
    if not at or not 0 <= now - at <= _FRESH:
        known = min(MOST, max(1.0, _runnable() / _count(), _small_share()))
        _measured = (now, known)
    return known


def stretch(seconds: float) -> float:
    """Convert a short limit to seconds of the clock, by the current load."""
    return min(seconds * factor(), seconds + EXTRA)


@functools.cache
def patience() -> float:
    """Return how many times longer a whole command may take, from 1 to PATIENCE.

    That is decided once, by the load of the last minute and of this moment, so that all its
    processes agree.
    """
    try:
        load = os.getloadavg()[0]
    except (OSError, AttributeError):
        load = 0.0
    return min(PATIENCE, max(load / _count(), factor()))


class Stopwatch:
    """Counts the seconds that an idle machine would have taken; each thread needs its own."""

    __slots__ = ("_last", "_spent", "started_at")

    def __init__(self, started_at: float | None = None) -> None:
        self.started_at = self._last = time.monotonic() if started_at is None else started_at
        self._spent = 0.0

    def read(self) -> float:
        """Return the seconds so far; call it often, since the factor changes."""
        now = time.monotonic()
        self._spent += (now - self._last) / factor()
        self._last = now
        return max(self._spent, now - self.started_at - EXTRA)

    def wait(
        self, event: threading.Event, limit: float, useless: Callable[[], bool] | None = None
    ) -> bool:
        """Wait for the event until `limit` seconds are counted; return whether it came.

        It also ends when waiting has become useless.
        """
        left = limit - (time.monotonic() - self._last)  # most events come before the first `read`
        if left <= 0:
            left = limit - self.read()
        while left > 0:
            if event.wait(min(left, SLICE)):
                return True
            if useless and useless():
                break
            left = limit - self.read()
        return event.is_set()


def _runnable() -> float:
    """Return how many processes and threads run or wait for a processor at this moment."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return float(file.read(128).split()[3].partition(b"/")[0])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


@functools.cache
def _count() -> float:
    """Return the number of processors of the machine, which all runnable processes share."""
    return float(os.cpu_count() or 1)


@functools.cache
def _small_share() -> float:
    """Return the slowdown if a control group, such as a container's, limits us below one CPU."""
    try:
        with open("/proc/self/cgroup") as file:
            group = next(line[3:].strip() for line in file if line.startswith("0::"))
        with open(f"/sys/fs/cgroup{group.rstrip('/')}/cpu.max") as file:
            quota, period = map(float, file.read(64).split())
        return period / quota
    except (OSError, ValueError, StopIteration, ZeroDivisionError):
        return 1.0


COMMAND = 360 * MEGABYTE
"""For a whole command: with the program itself less than 400 MB."""
CHECKS = 300 * MEGABYTE
"""For the checks. The rest is for the report, because glibc keeps what a thread has freed."""
_PROGRAM = 60 * MEGABYTE
"""What the program itself needs, at most; a process that has more when it begins may keep that."""
STACK = 8 * MEGABYTE
"""For each thread. A higher `ulimit -s` would use up the memory before a thread does anything."""
NO_THREAD = "could not start a thread, because memory or the number of processes is limited"
NO_PROCESS = "could not start a process, because memory or the number of processes is limited"
_guard = threading.Lock()
_limits: list[int] = []
"""Those that apply now; the lowest one counts."""
_lifted = 0
"""How many programs of others are being started now."""
_before: tuple[int, int] | None = None
"""The limits of data and stack without ours."""
_kept = 0
"""The bytes that this process had before, beside the program itself: in tests, or in a program of
others that calls this one."""
_mapped = 0
"""The bytes of files that are mapped so that they count as data, although they need no memory."""


@contextlib.contextmanager
def limited(most: int = COMMAND) -> Iterator[None]:
    """Limit the memory of the process to `most` bytes.

    A program that is started before the end inherits the limit, unless it is `lifted`.
    """
    with _guard:
        _limits.append(most)
        _apply()
    try:
        yield
    finally:
        with _guard:
            _limits.remove(most)
            _apply()


def allow_map(count: int) -> None:
    """Allow a private map of a file of that many bytes, which is only read and stays mapped."""
    global _mapped
    with _guard:
        if _limits:  # what is mapped before counts as what the process had
            _mapped += count
            _apply()


@contextlib.contextmanager
def lifted() -> Iterator[None]:
    """Let a program of others, such as a gateway, be started without the limits of this one."""
    global _lifted
    with _guard:
        _lifted += 1
        _apply()
    try:
        yield
    finally:
        with _guard:
            _lifted -= 1
            _apply()


def reason(what: str, most: int = CHECKS) -> Message:
    """Say that something needs more memory than it may use."""
    return text("{what} needs more than {most} of memory", what=what, most=size(most))


def cause(error: BaseException) -> str:
    """Which limit is the cause of an error: of memory, of threads or of processes; else empty."""
    if isinstance(error, MemoryError):
        return reason("this command", COMMAND)
    if isinstance(error, RuntimeError) and str(error) in (NO_THREAD, "can't start new thread"):
        return NO_THREAD
    if not isinstance(error, OSError) or error.filename is not None:
        return ""
    return NO_PROCESS if error.errno in (errno.EAGAIN, errno.ENOMEM) else ""


def _apply() -> None:
    """Set the soft limits; one that the operator has set is never raised."""
    global _before, _kept, _mapped
    if not _limits and _before is None:
        return
    import resource

    try:
        (data, most_data), (stack, most_stack) = map(
            resource.getrlimit, (resource.RLIMIT_DATA, resource.RLIMIT_STACK)
        )
    except OSError:  # a container or a hardened service forbids the system call
        return
    if _before is None:
        _before, _kept = (data, stack), max(0, _data() - _PROGRAM)
    infinite = resource.RLIM_INFINITY
    limits = [] if _lifted else _limits
    ours = [limit + _kept + _mapped for limit in limits]
    known = [one for one in (_before[0], *ours) if one != infinite]
    capped = _before[1] != infinite and _before[1] > STACK  # without a limit, threads get 2 MB
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (min(known, default=infinite), most_data))
    if capped:
        threading.stack_size(STACK if limits else 0)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_STACK, (STACK if limits else _before[1], most_stack))
    if not _limits:
        _before, _mapped = None, 0


def start_thread(work: Callable[..., object], name: str, *given: object) -> threading.Thread:
    """Start a thread that ends with the program; RuntimeError if there is no memory for it.

    Near the limit, a thread can fail before it reports its start, and Python would wait forever.
    """
    if not _has_room():
        raise RuntimeError(NO_THREAD)
    thread = threading.Thread(target=work, args=given, name=name, daemon=True)
    thread.start()
    return thread


def _has_room() -> bool:
    """Whether the stack of a thread, and a little more, is left below the limit."""
    import resource

    try:
        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    except OSError:
        return True
    return limit == resource.RLIM_INFINITY or _data() + 2 * STACK <= limit


def _data() -> int:
    """Return how much of its memory counts, in bytes; 0 where the kernel does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


OFTEN = 5.0
"""Seconds between two questions."""
ANSWER_WITHIN = 20.0
"""Seconds within which a drive must answer, more on a busy machine."""
_drives: dict[str, None] = {}
"""Where the command works, in the order in which it went there."""


def note_drive(place: StrPath) -> None:
    """Remember a folder that the command is about to use."""
    _drives[os.fspath(place)] = None


def watch_drives(say: Callable[[Message], None]) -> None:
    """Ask the drives of the noted folders from now on."""
    with contextlib.suppress(RuntimeError):  # no memory or no thread is left for it
        start_thread(_watch_drives, "drives", say)


def _watch_drives(say: Callable[[Message], None]) -> None:
    while True:
        time.sleep(OFTEN)
        for place in [*_drives]:
            with contextlib.suppress(RuntimeError):
                _ask_drive(place, say)


def _ask_drive(place: str, say: Callable[[Message], None]) -> None:
    """Say that a drive does not answer, and once more when it does."""
    answered = threading.Event()
    start_thread(_touch_drive, "drive", place, answered)
    if answered.wait(stretch(ANSWER_WITHIN)):
        return
    say(
        text(
            "The drive of {place} has not answered for {time}, and the command waits for it. To "
            "end the command: kill -9 {pid}. No file is then left half-written.",
            place=place,
            time=duration(ANSWER_WITHIN),
            pid=os.getpid(),
        )
    )
    answered.wait()
    say(text("The drive of {place} answers again.", place=place))


def _touch_drive(place: str, answered: threading.Event) -> None:
    with contextlib.suppress(OSError):
        os.statvfs(place)
    answered.set()
