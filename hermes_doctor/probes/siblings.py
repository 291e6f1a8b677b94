"""Find the other homes under the same root (the root home and its profiles) and shared bots."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.probes.bot_locks import IDENTITIES
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


def of(home: Home) -> list[Path]:
    """Return the other homes under the same root."""
    root = home.path.parent.parent if home.profile else home.path
    try:
        found = [root, *Home(root).profiles()[:_MOST]]
    except CouldNotLook:
        return []
    return [path for path in found if path != home.path]


def shared_bots(home: Home, own: Settings) -> list[SharedBot]:
    """Return this home's bots that are also in another home's .env; values are only compared."""
    bots = {
        variable: (scope, value)
        for scope, variable in IDENTITIES.items()
        if (value := own.value(variable))
    }
    found = []
    for other in of(home) if bots else ():
        theirs = _variables(other)
        for variable, (scope, value) in bots.items():
            if theirs.get(variable, "").strip() == value:
                ran = any(os.path.lexists(other / name) for name in _RAN)
                found.append(SharedBot(scope, variable, other, ran))
    return found


def _variables(home: Path) -> dict[str, str]:
    """Parse the .env of another home; empty if we may not read it."""
    try:
        data, _ = read(home / NAME, LIMIT)
    except (FileNotFoundError, CouldNotLook):
        return {}
    return variables.parse(data.decode("utf-8-sig", "replace"))
