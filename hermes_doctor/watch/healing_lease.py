"""Who heals a home: one watch, wherever watches keep what they know.

The lease lies in the home's vault. Looking never puts it there: a watch that heals does, before
its first repair. As long as its process lives it holds the file's lock; one that a timer starts
round by round is named in the file for as long as its last repair counts for its budget.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import Home
from hermes_doctor.processes import file_locks
from hermes_doctor.schedule.durations import LONGEST, span
from hermes_doctor.system import disk
from hermes_doctor.watch.clocks import Clock
from hermes_doctor.watch.lock_file import lock_file

if TYPE_CHECKING:
    from typing import Any

FILE = "watch.lease"
_SIZE = 256
"""Bytes of the one record, however long it is: so it is written over in place, under its lock."""


class Lease:
    """The lease of one home, for the watch that keeps what it knows in one file."""

    def __init__(self, home: Home, clock: Clock, memory: Path) -> None:
        import hashlib

        self.path = home.vault / FILE
        self.clock = clock
        self.who = f"{os.geteuid()}-{hashlib.sha256(os.fsencode(memory)).hexdigest()[:16]}"
        self._fd: int | None = None

    def refusal(self, *, make: bool = False) -> str | None:
        """Why another watch has it; None when it is ours now, or nobody's and none is made."""
        if self._fd is not None and self._still():
            return None
        self.close()
        if make:
            disk.make_folder(self.path.parent)
        try:
            fd = lock_file(self.path, make=make)
        except (FileNotFoundError, NotADirectoryError):
            return None
        why = self._taken(fd)
        if why:
            os.close(fd)
            return why
        self._fd = fd
        return None

    def prolong(self, period: float) -> None:
        """A repair is about to be made: nobody else repairs before it counts no more."""
        if self._fd is None:
            return
        data = {"boot": self.clock.boot, "who": self.who, "until": self.clock.lasting() + period}
        disk.place(self._fd, json.dumps(data).encode().ljust(_SIZE), 0)
        disk.sync(self._fd)

    def give_up(self) -> None:
        """Take the file away, if it is ours."""
        if self.refusal() is None and self._fd is not None:
            disk.remove(self.path)
            self.close()

    def close(self) -> None:
        """Let go of the lock; what the file says stays."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _still(self) -> bool:
        """Whether the file that we hold is the one that others would find."""
        try:
            held, there = os.fstat(self._fd or 0), os.lstat(self.path)
        except OSError:
            return False
        return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)

    def _taken(self, fd: int) -> str | None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = next(iter(file_locks.holders([self.path]).get(self.path, [])), 0)
            named = f" (process {who})" if who else ""
            return f"another watch{named} heals this home; this one looks"
        left = self._left(_record(fd))
        if not left:
            return None
        return f"another watch has healed this home lately; this one may in {span(left)}"

    def _left(self, said: dict[str, Any]) -> float:
        """Seconds for which the file names somebody else."""
        if said.get("boot") != self.clock.boot or said.get("who") == self.who:
            return 0.0
        until = said.get("until")
        if not isinstance(until, int | float) or not until - int(self.clock.lasting()) > 0:
            return 0.0
        left = until - int(self.clock.lasting())
        return float(left) if left <= LONGEST else 0.0


def _record(fd: int) -> dict[str, Any]:
    try:
        said = json.loads(os.pread(fd, _SIZE, 0))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
