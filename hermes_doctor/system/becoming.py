"""Become another user with no way back."""

from __future__ import annotations

import os
import signal

from hermes_doctor.model import CouldNotLook
from hermes_doctor.system import files
from hermes_doctor.system.privileges import Privileges

_NO_NEW_PRIVS, _SET_DUMPABLE, _DEATH_SIGNAL = 38, 4, 1


def become_permanently(user: Privileges, parent: int) -> None:
    """Become the user with no way back, and end with the parent.

    The user may neither trace this process nor read its memory, which has what root has loaded.
    """
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    user.become()  # the kernel takes all capabilities away
    library.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    library.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    library.prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    if 0 in os.getresuid():
        raise CouldNotLook("could not give up root's rights")
    for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"):  # root's, not this user's
        os.environ.pop(name, None)
    files.keep_user_home()
    os.environ["HOME"] = _folder_of(user.uid)
    os.chdir("/")


def _folder_of(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_dir
    except KeyError:
        return "/"


def close_others(*kept: int) -> None:
    """Close all descriptors but the standard ones and these."""
    first = 3
    for fd in (*sorted(kept), 65536):
        os.closerange(first, fd)
        first = fd + 1
