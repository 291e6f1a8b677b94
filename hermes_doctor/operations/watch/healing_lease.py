"""The lease that lets only one watch heal a home, even when watches use different state folders.

The lease is a file in the home's vault. A watch that heals creates it before its first repair; a
watch that only examines never does. A running watch holds the file's lock. A watch that a timer
starts round by round is named in the file while its last repair counts towards its budget.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.system import disk, open_files
from hermes_doctor.operations.watch.clocks import MachineClock
from hermes_doctor.operations.watch.state import open_lock_file
from hermes_doctor.repair.schedule.durations import MAX_DURATION, format_duration

FILE = "watch.lease"
_SIZE = 256
"""Fixed size of the record in bytes, so that it can be overwritten in place under the lock."""


class Lease:
    """The lease of one home, held by the watch with this state file."""

    def __init__(self, home: Home, clock: MachineClock, memory: Path) -> None:
        import hashlib

        self.path = home.vault / FILE
        self.clock = clock
        self.owner_id = f"{os.geteuid()}-{hashlib.sha256(os.fsencode(memory)).hexdigest()[:16]}"
        self._fd: int | None = None

    @property
    def descriptor(self) -> int | None:
        """The descriptor that holds the lock; None if we do not have it."""
        return self._fd

    def adopt(self, fd: int | None) -> None:
        """Hold the lock by this open file, which another process has locked; None releases it."""
        kept = None if fd is None else os.dup(fd)
        self.close()
        if kept is not None:
            try:
                fcntl.flock(kept, fcntl.LOCK_UN)  # else the system names the other process
                fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(kept)
                return
        self._fd = kept

    def refusal(self, *, create: bool = False) -> str | None:
        """Why another watch has the lease; None if it is ours, or free and `create` is false."""
        if self._fd is not None and self._still():
            return None
        self.close()
        if create:
            disk.make_folder(self.path.parent)
        try:
            fd = open_lock_file(self.path, create=create)
        except (FileNotFoundError, NotADirectoryError):
            return None
        why = self._taken(fd)
        if why:
            os.close(fd)
            return why
        self._fd = fd
        return None

    def prolong(self, period: float) -> None:
        """Keep the lease for the budget's period, because a repair is about to be made."""
        if self._fd is None:
            return
        data = {
            "boot": self.clock.boot,
            "who": self.owner_id,
            "until": self.clock.boot_clock() + period,
        }
        disk.write_at(self._fd, json.dumps(data).encode().ljust(_SIZE), 0)
        disk.sync(self._fd)

    def give_up(self) -> None:
        """Delete the file if the lease is ours."""
        if self.refusal() is None and self._fd is not None:
            disk.remove(self.path)
            self.close()

    def close(self) -> None:
        """Release the lock; the record in the file stays."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _still(self) -> bool:
        """Whether the locked file is still the one at this path."""
        try:
            held, there = os.fstat(self._fd or 0), os.lstat(self.path)
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)

    def _taken(self, fd: int) -> str | None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = next(iter(open_files.lock_holders([self.path]).get(self.path, [])), 0)
            named = f" (process {who})" if who else ""
            return f"another watch{named} repairs this home; this one only checks"
        left = self._left(_record(fd))
        if not left:
            return None
        return f"another watch repaired this home; this one may repair in {format_duration(left)}"

    def _left(self, said: dict[str, Any]) -> float:
        """Seconds for which the record reserves the home for another watch."""
        if said.get("boot") != self.clock.boot or said.get("who") == self.owner_id:
            return 0.0
        until = said.get("until")
        if not isinstance(until, int | float) or not until - int(self.clock.boot_clock()) > 0:
            return 0.0
        left = until - int(self.clock.boot_clock())
        return float(left) if left <= MAX_DURATION else 0.0


def _record(fd: int) -> dict[str, Any]:
    try:
        said = json.loads(os.pread(fd, _SIZE, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
