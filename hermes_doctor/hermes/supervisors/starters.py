"""Find what started a gateway, and what starts it again where no service manager runs.

A service's main process may be a wrapper around it: uv, a shell or a script. Without a service, it
was a person, this tool or a script. `watch --heal` can bring a gateway back: as a process that
keeps running, or in single rounds that cron starts.
"""

from __future__ import annotations

import os
from itertools import chain, takewhile
from pathlib import Path

from hermes_doctor.core.home import BACKGROUND_LOG, PREFIX, Home, identity, state_folder
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import open_files
from hermes_doctor.core.system.files import read_head
from hermes_doctor.hermes.processes import home_of, process_stat, runtime_files
from hermes_doctor.hermes.processes.lineage import Ancestor, ancestors, command_line, script_above
from hermes_doctor.hermes.supervisors.units import Unit, runs_gateway

_HEAD = 64 * 1024
_SCRIPTS = 4
"""The first words of a command, among which its script is searched."""


def processes_between(main: int, pid: int) -> list[Ancestor] | None:
    """Return the processes from the parent of `pid` up to `main`; None if `main` is not above."""
    line = ancestors(pid)
    top = next((ancestor for ancestor in line if ancestor.pid == main), None)
    return None if top is None else [*takewhile(lambda one: one.pid != main, line), top]


def is_wrapper_of(main: int, pid: int, home: Path) -> bool:
    """Whether a main process is this gateway, or a parent of it with no other gateway between.

    An agent may start the gateway of another home. That process is in the control group of the
    agent's own gateway, but stopping the service of the one must not count as stopping the other.
    """
    if main == pid:
        return True
    line = processes_between(main, pid)
    return line is not None and not any(_of_another(ancestor.pid, home) for ancestor in line)


def is_for_home(unit: Unit, home: Path) -> bool:
    """Whether a unit is for a gateway, and does not name another home."""
    runs = runs_gateway(unit.program)
    says = "HERMES_HOME" in unit.environment
    if runs or says:
        return unit.home is None or home_of.is_same_folder(unit.home, home)
    return unit.name.startswith("hermes") or any(map(_mentions, unit.program[:_SCRIPTS]))


def _of_another(pid: int, home: Path) -> bool:
    """Whether a process is the gateway of another home; True if its home cannot be seen."""
    argv = command_line(pid)
    claim = home_of.home_by_lock_file(pid)
    if claim is None or not claim.locked:
        if not home_of.is_gateway(argv):
            return False
        claim = claim or home_of.home_by_environment(pid, home_of.profile_in(argv))
    return claim is None or not home_of.is_same_folder(claim.home, home)


def _mentions(word: str) -> bool:
    """Whether a word is the path of a script that mentions Hermes and a gateway."""
    if not word.startswith("/"):
        return False
    try:
        data, _ = read_head(Path(word), _HEAD)
    except (FileNotFoundError, CouldNotLook):
        return False
    return data.startswith(b"#!") and b"hermes" in data and b"gateway" in data


def loop_above(home: Home, pid: int) -> int | None:
    """Return the shell script that runs a gateway and has outlived an earlier one; else None.

    Nobody can know whether it also runs again after a reboot.
    """
    script = script_above(pid)
    if script is None:
        return None
    began = process_stat.start_moment(script[1])
    earlier = [
        life for life in runtime_files.read_lives(home) if life.pid != pid and life.began > began
    ]
    return script[0] if earlier else None


def describe_starter(home: Home, pid: int) -> str:
    """Say what started a gateway without a service: those of this tool print into its own log."""
    printed = next(
        (file.path for file in open_files.descriptors(pid) or () if file.number == "1"),
        None,
    )
    if printed is None:
        return "no service runs it"
    if printed == os.path.realpath(home / BACKGROUND_LOG):
        return "hermes-doctor started it in the background"
    return "it was started by hand"


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
    from hermes_doctor.core.system import open_files, root_parent

    if root_parent.is_separate():  # it may be root's
        seen = root_parent.ask_root("running_watch")
        return WatchKeeper(*seen) if seen else None

    folders = {_owners_folder(home), state_folder()}
    # Most users have no watch; building the name of its lock takes 5 ms.
    locks = [folder / f"watch-{identity(home)}.lock" for folder in folders if _has_locks(folder)]
    for pid in chain.from_iterable(open_files.lock_holders(locks).values()):
        if "--once" not in command_line(pid):
            return WatchKeeper(
                "hermes-doctor", True, f"`hermes-doctor watch --heal` restarts it (process {pid})"
            )
    return None


def _has_locks(folder: Path) -> bool:
    try:
        return any(name.endswith(".lock") for name in os.listdir(folder))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _crontab_line(home: Home) -> WatchKeeper | None:
    from hermes_doctor.core.system import crontab

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
    from hermes_doctor.core.system.accounts import account

    try:
        owner = os.stat(home.path).st_uid
    except OSError:
        return state_folder()
    folder = account(owner).folder if owner != os.geteuid() else None
    return Path(folder) / ".local" / "state" / "hermes-doctor" if folder else state_folder()
