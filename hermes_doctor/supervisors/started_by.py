"""Find out what started a gateway that no service runs: a person, this tool or a script."""

from __future__ import annotations

import os

from hermes_doctor.home import BACKGROUND_LOG, Home
from hermes_doctor.processes import descriptors, exit_diary, process_stat
from hermes_doctor.processes.lineage import script_above


def loop_above(home: Home, pid: int) -> int | None:
    """Return the shell script that runs a gateway and has outlived an earlier one; else None.

    Nobody can know whether it also runs again after a reboot.
    """
    script = script_above(pid)
    if script is None:
        return None
    began = process_stat.start_moment(script[1])
    earlier = [life for life in exit_diary.read(home) if life.pid != pid and life.began > began]
    return script[0] if earlier else None


def describe_starter(home: Home, pid: int) -> str:
    """Say what started a gateway without a service: those of this tool print into its own log."""
    printed = next((one.path for one in descriptors.of(pid) or () if one.number == "1"), None)
    if printed is None:
        return "no service runs it"
    if printed == os.path.realpath(home / BACKGROUND_LOG):
        return "hermes-doctor started it in the background"
    return "it was started by hand"
