"""Limit the memory of this process while it works on a home.

The kernel enforces the limit, so that code that needs too much gets a MemoryError instead of taking
the memory of the bot. It applies to the data of a process and not to mapped files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterator

from hermes_doctor.core.message import Message, text
from hermes_doctor.core.system.files import MEGABYTE, size

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
