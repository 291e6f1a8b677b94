"""Where the operator's files are, and whether they can be trusted.

They are outside of every Hermes home, so that an agent that works in its home cannot mute its own
problems. A file that another user could have written is refused.
"""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system.files import MEGABYTE, read, user_home
from hermes_doctor.system.trust import why_untrusted

SYSTEM = Path("/etc/hermes-doctor")
"""The folder for all users."""
CONFIG, MUTES = "config.toml", "mutes.json"


def folders() -> tuple[Path, Path]:
    """The folder for all users, and the one of this user, which comes first if both say it."""
    return SYSTEM, own_folder()


def own_folder() -> Path:
    """The folder of this user."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    config = Path(base) if os.path.isabs(base) else user_home() / ".config"
    return config / "hermes-doctor"


def writing_folder() -> Path:
    """Where this user's mutes are stored: root's are for all users."""
    chosen = os.path.isabs(os.environ.get("XDG_CONFIG_HOME", ""))
    return SYSTEM if os.geteuid() == 0 and not chosen else own_folder()


def read_trusted(path: Path) -> bytes | None:
    """Read a file; None if it does not exist. Raise Trouble if it cannot be read or trusted."""
    if not os.path.lexists(path):
        return None
    why = why_untrusted(path)
    if why:
        raise Trouble(text("Refused to read {path}: {reason}.", path=path, reason=why))
    try:
        return read(path, MEGABYTE)[0]
    except CouldNotLook as doubt:
        raise Trouble(text("Could not read {path}: {reason}.", path=path, reason=doubt)) from None
