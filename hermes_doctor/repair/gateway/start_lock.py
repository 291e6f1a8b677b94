"""Hold gateway.lock, so that no gateway can start while its files change.

A loop in a shell starts a gateway again as soon as one ends, and nothing can tell it to wait. A
gateway that starts and finds the lock taken ends at once, before it opens a platform.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.system import disk
from hermes_doctor.hermes.processes.home_of import LOCK


class StartLock:
    """The lock of a home, taken and released by this process."""

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

        from hermes_doctor.core.system.privileges import as_owner_of

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
