"""Find the other homes under the same root or with a running gateway, and shared bots."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.bot_locks import IDENTITIES
from hermes_doctor.probes.other_gateways import OtherGateway
from hermes_doctor.processes import process_stat
from hermes_doctor.processes.home_of import is_same_folder
from hermes_doctor.settings import variables
from hermes_doctor.settings.env_file import LIMIT, NAME
from hermes_doctor.settings.variables import Settings
from hermes_doctor.system.files import read

_MOST = 100
_RAN = ("gateway_state.json", "gateway.pid", "gateway.lock")


class SharedBot(NamedTuple):
    """A bot that two homes use."""

    scope: str
    """Hermes' name for its lock."""
    variable: str
    home: Path
    """The other home."""
    ran: bool
    """Whether a gateway has ever run on the other home."""
    pid: int | None = None
    """The running gateway of the other home; None if none was seen."""


def of(home: Home) -> list[Path]:
    """Return the other homes under the same root."""
    root = home.path.parent.parent if home.profile else home.path
    try:
        found = [root, *Home(root).profiles()[:_MOST]]
    except CouldNotLook:
        return []
    return [path for path in found if path != home.path]


def shared_bots(home: Home, own: Settings, running: Sequence[OtherGateway] = ()) -> list[SharedBot]:
    """Return this home's bots that another home also uses; values are only compared.

    The other homes are those under the same root and those of the running gateways.
    """
    bots = {
        variable: (scope, value)
        for scope, variable in IDENTITIES.items()
        if (value := own.value(variable))
    }
    if not bots:
        return []
    found: list[SharedBot] = []
    resting = [path for path in of(home) if not any(is_same_folder(path, r.home) for r in running)]
    for other, pid in [
        *((one.home, one.pid) for one in running),
        *((one, None) for one in resting),
    ]:
        theirs = _variables(other, pid)
        for variable, (scope, value) in bots.items():
            if theirs.get(variable, "").strip() == value:
                ran = pid is not None or any(os.path.lexists(other / name) for name in _RAN)
                found.append(SharedBot(scope, variable, other, ran, pid))
    return found


def _variables(home: Path, pid: int | None) -> dict[str, str]:
    """Return the variables of another home and its gateway, as far as we may read them."""
    given = (process_stat.environment(pid) if pid else None) or {}
    try:
        data, _ = read(home / NAME, LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return given
    return given | variables.parse(data.decode("utf-8-sig", "replace"))
