"""Decide whether a service's main process is a wrapper around a gateway: uv, a shell, a script."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from hermes_doctor.model import CouldNotLook
from hermes_doctor.processes import home_of
from hermes_doctor.processes.lineage import Ancestor, ancestors, command_line
from hermes_doctor.supervisors.unit import Unit, runs_gateway
from hermes_doctor.system.files import read_head

_HEAD = 64 * 1024
_SCRIPTS = 4
"""The first words of a command, among which its script is searched."""


def processes_between(main: int, pid: int) -> list[Ancestor] | None:
    """Return the processes from the parent of `pid` up to `main`; None if `main` is not above."""
    line = ancestors(pid)
    top = next((one for one in line if one.pid == main), None)
    return None if top is None else [*takewhile(lambda one: one.pid != main, line), top]


def is_wrapper_of(main: int, pid: int, home: Path) -> bool:
    """Whether a main process is this gateway, or a parent of it with no other gateway between.

    An agent may start the gateway of another home. That process is in the control group of the
    agent's own gateway, but stopping the service of the one must not count as stopping the other.
    """
    if main == pid:
        return True
    line = processes_between(main, pid)
    return line is not None and not any(_of_another(one.pid, home) for one in line)


def is_for_home(unit: Unit, home: Path) -> bool:
    """Whether a unit is for a gateway, and does not name another home."""
    runs = runs_gateway(unit.program)
    says = "HERMES_HOME" in unit.environment
    if runs or says:
        return unit.home is None or home_of.is_same_folder(unit.home, home)
    return unit.name.startswith("hermes") or any(map(_mentions, unit.program[:_SCRIPTS]))


def _of_another(pid: int, home: Path) -> bool:
    """Whether a process is the gateway of another home; True if its home cannot be seen."""
    from hermes_doctor.processes import gateway_command

    argv = command_line(pid)
    claim = home_of.home_by_lock_file(pid)
    if claim is None or not claim.locked:
        if not gateway_command.is_gateway(argv):
            return False
        claim = claim or home_of.home_by_environment(pid, gateway_command.profile_in(argv))
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
