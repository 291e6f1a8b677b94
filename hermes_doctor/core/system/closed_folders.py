"""Let the owner of a home reach it by its path although root has closed a folder above it.

A container's volume seen from outside is such a home. Root opens the owner's folder once and shows
it at its own path, in the mounts of one process only. Below the closed folder, that process sees
nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path

from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import privileges, root_parent
from hermes_doctor.core.system.privileges import Privileges

_OWN_MOUNTS = 0x20000
_RECEIVE = 0x80000 | 0x4000
"""Mounts of this process stay its own; what others unmount is unmounted here, too."""
_BIND = 0x1000 | 0x4000
_NO_PROGRAMS = 2 | 4 | 8
"""No set-user-id bits, devices or programs."""


def show(home: Path, user: Privileges) -> None:
    """Show the home to this process, which is still root's and about to become the user."""
    top, closed = _top(home, user), _closed(home, user)
    if closed is None:
        return
    mounts = _Mounts()
    fd = -1
    try:
        root_parent.keep_mounts(os.readlink("/proc/self/ns/mnt"))
        mounts.separate()
        fd = os.open(top, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        if not privileges.is_inside_folder_of(user.uid, fd):
            raise CouldNotLook("another program replaced the folder of the home")
        mounts.mount("tmpfs", closed, "tmpfs", _NO_PROGRAMS, "mode=755,size=1m")
        umask = os.umask(0o022)
        os.makedirs(top)
        os.umask(umask)
        mounts.mount(Path(f"/proc/self/fd/{fd}"), top, "", _BIND, "")
    except OSError as error:
        raise CouldNotLook(
            "root has closed {folder} to the owner of {home}, and the system does not let root "
            "show it to a process of the owner ({reason}); run hermes-doctor in the container, "
            "or as the owner",
            folder=closed,
            home=home,
            reason=os.strerror(error.errno or 0).lower(),
        ) from None
    finally:
        if fd >= 0:
            os.close(fd)


def _top(home: Path, user: Privileges) -> Path:
    """The topmost folder of the user on the way to the home."""
    found = privileges.of(home / "_")
    return found.folder if found and found.uid == user.uid else home


def _closed(home: Path, user: Privileges) -> Path | None:
    """The topmost folder above the home that the user may not enter."""
    above = reversed(home.parents)
    return next((path for path in above if not privileges.may_enter(user, path)), None)


class _Mounts:
    """The mounts of this process."""

    def __init__(self) -> None:
        import ctypes

        self._ctypes = ctypes
        self._library = ctypes.CDLL(None, use_errno=True)

    def separate(self) -> None:
        """Take them apart from those of all other processes."""
        self._check(self._library.unshare(_OWN_MOUNTS))
        self._check(self._library.mount(None, b"/", None, self._flags(_RECEIVE), None))

    def mount(self, source: str | Path, place: Path, kind: str, flags: int, data: str) -> None:
        """Mount something at a place."""
        words = [os.fsencode(one) for one in (source, place, kind)]
        self._check(self._library.mount(*words, self._flags(flags), data.encode()))

    def _flags(self, flags: int) -> object:
        return self._ctypes.c_ulong(flags)

    def _check(self, result: int) -> None:
        if result:
            number = self._ctypes.get_errno()
            raise OSError(number, os.strerror(number))
