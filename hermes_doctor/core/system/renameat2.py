"""Call the kernel's renameat2: exchange two names, or rename only to a free name."""

from __future__ import annotations

import errno
import functools
import os
from collections.abc import Callable
from pathlib import Path

NOREPLACE, EXCHANGE = 1, 2
_HERE = -100
"""AT_FDCWD: relative names start at the working folder."""
_NUMBERS = {"x86_64": 316, "aarch64": 276}
"""The numbers of the system call, for C libraries without a function for it (musl)."""
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EPERM)
"""Errors of a file system, a kernel or a sandbox that does not support the call."""


def call(old: Path, new: Path, flags: int) -> bool:
    """Make the call; False where it is not supported, OSError where it failed."""
    import ctypes

    function = _function()
    if function is None:
        return False
    if not function(os.fsencode(old), os.fsencode(new), flags):
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), str(old))


@functools.cache
def _function() -> Callable[[bytes, bytes, int], int] | None:
    import ctypes
    import platform
    import sys

    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    named = getattr(library, "renameat2", None)
    if named is not None:
        return lambda old, new, flags: int(named(_HERE, old, _HERE, new, flags))
    number = _NUMBERS.get(platform.machine())
    if number is None:
        return None
    return lambda old, new, flags: int(library.syscall(number, _HERE, old, _HERE, new, flags))
