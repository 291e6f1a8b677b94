"""The note by which Hermes knows that a SIGTERM is meant: without it the end counts as a failure.

Hermes reads `.gateway-planned-stop.json` when the signal comes, and removes it. It names one
process by number and start, and is worth nothing after a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime

from hermes_doctor.gateway.process_handle import Held
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes.process_stat import own_number
from hermes_doctor.system import disk
from hermes_doctor.system.files import read

NAME = ".gateway-planned-stop.json"


def leave(home: Home, process: Held) -> None:
    """Announce that this very process is about to be stopped; the stop goes on without it too."""
    note = {
        "target_pid": own_number(process.pid),
        "target_start_time": process.ticks,
        "stopper_pid": os.getpid(),
        "written_at": datetime.now(UTC).isoformat(),
    }
    with contextlib.suppress(OSError):  # a full disk; the gateway then says that it was signalled
        disk.save(home / NAME, json.dumps(note).encode())


def clear(home: Home, number: int) -> None:
    """Remove the note if the process, by the number that it knew itself by, never read it."""
    with contextlib.suppress(OSError, CouldNotLook, ValueError, TypeError, KeyError):
        if json.loads(read(home / NAME, 4096)[0])["target_pid"] == number:
            disk.remove(home / NAME)
