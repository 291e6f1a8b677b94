"""Let a process reach a folder by its path although folders above it are closed to its user.

Docker closes the folders above its volumes, for example. There, the child that will become the
owner of a home (`separate_process`) gets a mount namespace of its own: in the place of the closed
folder it sees one that is empty but for the way to the home. Nobody else sees that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook

_NEW_MOUNT_NAMESPACE = 0x20000
_NO_SUID, _NO_DEVICES, _BIND, _RECURSIVE, _PRIVATE = 2, 4, 4096, 16384, 1 << 18


class NoView(CouldNotLook):
    """Root may not make a mount namespace, as in most containers."""


def open_way(folder: Path, uid: int, may_enter: Callable[[Path], bool]) -> None:
    """Let this process, which is still root, see the way to a folder of this user as open."""
    closed = next((one for one in reversed(folder.parents) if not may_enter(one)), None)
    if closed is None:
        return
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)

    def mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
        words = (os.fsencode(one) for one in (source, target, kind))
        if library.mount(*words, ctypes.c_ulong(flags), data.encode()):
            why = os.strerror(ctypes.get_errno()).lower()
            raise NoView(text("could not open the way to the home ({why})", why=why))

    if library.unshare(_NEW_MOUNT_NAMESPACE):
        raise NoView("root may not make a mount namespace")
    mount("none", Path("/"), "none", _RECURSIVE | _PRIVATE)  # nothing of this is seen outside
    fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_uid != uid:
            raise CouldNotLook("another program replaced the folder of the home")
        mount("tmpfs", closed, "tmpfs", _NO_SUID | _NO_DEVICES, "mode=755,size=1m")
        mask = os.umask(0o022)
        folder.mkdir(parents=True)
        os.umask(mask)
        mount(f"/proc/self/fd/{fd}", folder, "none", _BIND | _RECURSIVE)
    finally:
        os.close(fd)
