"""Names the jobs of a home, and the folders outside of it where this tool stores its state."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.system.files import user_home

SERVICE_VARIABLE = "HERMES_DOCTOR_SERVICE"
"""Environment variable that the unit of `watch install` sets."""


PREFIX = "hermes-doctor-watch"
SYSTEM_STATE = Path("/var/lib")


def state_folder() -> Path:
    """The folder where the commands and watches of this user store their state."""
    base = os.environ.get("XDG_STATE_HOME", "")
    state = Path(base) if os.path.isabs(base) else user_home() / ".local" / "state"
    return state / "hermes-doctor"


def identity(home: Home) -> str:
    """A short name of a home for files and units: its name and part of its path's digest."""
    import hashlib
    import re

    name = home.profile or home.path.name.lstrip(".")
    place = hashlib.sha256(os.fsencode(home.path)).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')[:24] or 'home'}-{place}"


def system_state_folder(home: Home) -> Path:
    """Where the system service of a home stores its state; its user may have no such folder."""
    if sys.platform == "darwin":
        return state_folder()
    return SYSTEM_STATE / f"{PREFIX}-{identity(home)}" / "hermes-doctor"


def config_environment() -> dict[str, str]:
    """Where this user's own settings are, if not in the usual place; a job must know it."""
    chosen = os.environ.get("XDG_CONFIG_HOME", "")
    return {"XDG_CONFIG_HOME": chosen} if os.path.isabs(chosen) else {}
