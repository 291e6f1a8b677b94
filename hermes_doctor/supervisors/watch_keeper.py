"""Find a watch of this tool that starts a gateway without a supervisor again.

Where there is no service manager, `watch --heal` can bring the gateway back: as a process that
keeps running, or in single rounds that cron starts.
"""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.supervisors.job_names import PREFIX, identity, state_folder


class WatchKeeper(NamedTuple):
    """What restarts a gateway that has no supervisor."""

    name: str
    """What people call it, as in "restarted by cron"."""
    works: bool
    why: str
    """One clause that says how it does so, or why it does not."""


def find_keeper(home: Home) -> WatchKeeper | None:
    """Return the watch that heals this home; None if there is none that we can see."""
    return running_watch(home) or _crontab_line(home)


def running_watch(home: Home) -> WatchKeeper | None:
    """Return a running watch that holds the lock for healing, unless it is a single round.

    It runs as the owner of the home, or as us: root can watch the homes of others.
    """
    from hermes_doctor.processes import file_locks
    from hermes_doctor.processes.lineage import command_line
    from hermes_doctor.system import root_parent

    if root_parent.is_separate():  # it may be root's
        seen = root_parent.ask_root("running_watch")
        return WatchKeeper(*seen) if seen else None

    folders = {_owners_folder(home), state_folder()}
    locks = [folder / f"watch-{identity(home)}.lock" for folder in folders]
    for pid in chain.from_iterable(file_locks.holders(locks).values()):
        if "--once" not in command_line(pid):
            return WatchKeeper(
                "hermes-doctor", True, f"`hermes-doctor watch --heal` restarts it (process {pid})"
            )
    return None


def _crontab_line(home: Home) -> WatchKeeper | None:
    from hermes_doctor.system import crontab

    if not crontab.is_installed():
        return None
    try:
        owner = os.stat(home.path).st_uid
        if crontab.is_surely_empty(owner):
            return None
        lines = crontab.read_lines(owner)
    except (CouldNotLook, OSError):
        return None
    if not any(heals(line, home) for line in lines):
        return None
    if not crontab.is_running():
        return WatchKeeper("cron", False, "its crontab line starts it again, but cron does not run")
    return WatchKeeper("cron", True, "a crontab line starts it again (`watch --heal`)")


def heals(line: str, home: Home) -> bool:
    """Whether a crontab line runs the watch of this home with `--heal`."""
    mine = line.rstrip("\n").endswith(f"# {PREFIX}-{identity(home)}")
    return mine and not line.lstrip().startswith("#") and " --heal " in line


def _owners_folder(home: Home) -> Path:
    """Where the watches of the home's owner store their state."""
    from hermes_doctor.system.accounts import account

    try:
        owner = os.stat(home.path).st_uid
    except OSError:
        return state_folder()
    folder = account(owner).folder if owner != os.geteuid() else None
    return Path(folder) / ".local" / "state" / "hermes-doctor" if folder else state_folder()
