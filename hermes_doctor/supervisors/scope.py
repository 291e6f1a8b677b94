"""Describe a systemd manager: the system manager, or a user manager."""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.supervisors.unit import SYSTEMD_SYSTEM, SYSTEMD_USER
from hermes_doctor.system.files import folder_of


def runtime_folder(uid: int) -> Path:
    """Return the runtime folder of a user, which has the sockets of the user manager."""
    own = os.environ.get("XDG_RUNTIME_DIR") if uid == os.geteuid() else None
    return Path(own or f"/run/user/{uid}")


class Scope(NamedTuple):
    """One systemd manager: the system manager, or the user manager of one user."""

    uid: int | None
    """The user; None for the system manager."""
    name: str
    user: Path
    """The home folder of the user that its services run as by default."""
    folders: tuple[Path, ...]
    """The folders of its units, in descending priority."""

    @property
    def kind(self) -> str:
        """The kind of its units."""
        return SYSTEMD_SYSTEM if self.uid is None else SYSTEMD_USER


def system_scope() -> Scope:
    """Return the system manager."""
    names = (
        *("/etc/systemd/system", "/run/systemd/transient", "/run/systemd/system"),
        *("/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"),
    )
    return Scope(None, "root", Path("/root"), tuple(map(Path, names)))


def of_user(uid: int) -> Scope | None:
    """Return the user manager of a user; None for a uid without an account."""
    import pwd

    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return None
    user = Path(folder_of(uid, entry.pw_dir))
    folders = (
        *(user / ".config/systemd/user", Path("/etc/systemd/user")),
        *(runtime_folder(uid) / "systemd/user", Path("/run/systemd/user")),
        *(user / ".local/share/systemd/user", Path("/usr/local/lib/systemd/user")),
        Path("/usr/lib/systemd/user"),
    )
    return Scope(uid, entry.pw_name, user, folders)
