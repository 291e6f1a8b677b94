"""Write the file that tells Hermes a SIGTERM is planned; without it the stop counts as a failure.

Hermes reads `.gateway-planned-stop.json` when the signal arrives, and removes it. The file names
one process by id and start time, and is valid for a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
from datetime import UTC, datetime

from hermes_doctor.core.home import Home
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import read
from hermes_doctor.hermes.processes.process_stat import pid_in_namespace
from hermes_doctor.repair.gateway.process_handle import ProcessHandle

NAME = ".gateway-planned-stop.json"


def announce(home: Home, process: ProcessHandle) -> None:
    """Write the file for this process; a failure to write it does not prevent the stop."""
    note = {
        "target_pid": pid_in_namespace(process.pid),
        "target_start_time": process.ticks,
        "stopper_pid": os.getpid(),
        "written_at": datetime.now(UTC).isoformat(),
    }
    with contextlib.suppress(OSError):  # a full disk; the gateway then logs an unplanned signal
        disk.save(home / NAME, json.dumps(note).encode())


def clear(home: Home, number: int) -> None:
    """Remove the file if the process never read it; `number` is the id in its own namespace."""
    with contextlib.suppress(OSError, CouldNotLook, ValueError, TypeError, KeyError):
        if json.loads(read(home / NAME, 4096)[0])["target_pid"] == number:
            disk.remove(home / NAME)
