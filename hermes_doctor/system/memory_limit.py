"""Limit the memory of this process while it reads a home.

The kernel enforces the limit, so that code that needs too much gets a MemoryError instead of taking
the memory of the bot. It applies to the data of a process and not to mapped files.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from hermes_doctor.message import Message, text
from hermes_doctor.system.files import MEGABYTE, size

MOST = 360 * MEGABYTE
"""With the program itself less than 400 MB."""
_guard = threading.Lock()
_users = 0
_before = 0


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Apply the limit until the last of these contexts ends; programs started meanwhile keep it."""
    global _users
    with _guard:
        _users += 1
        if _users == 1:
            _apply()
    try:
        yield
    finally:
        with _guard:
            _users -= 1
            if not _users:
                _lift()


def reason(what: str) -> Message:
    """Say that something needs more memory than it may use."""
    return text("{what} needs more than {most} of memory", what=what, most=size(MOST))


def _apply() -> None:
    global _before
    import resource

    _before, most = resource.getrlimit(resource.RLIMIT_DATA)
    known = [limit for limit in (_before, MOST) if limit != resource.RLIM_INFINITY]
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (min(known), most))


def _lift() -> None:
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(
            resource.RLIMIT_DATA, (_before, resource.getrlimit(resource.RLIMIT_DATA)[1])
        )
