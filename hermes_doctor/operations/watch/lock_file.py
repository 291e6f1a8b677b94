"""Opens files that exist only to be locked."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hermes_doctor.core.system import disk
from hermes_doctor.core.system.privileges import as_owner_of


def open_lock_file(path: Path, *, create: bool) -> int:
    """Open a lock file; it must be a regular file, never a FIFO or a symbolic link.

    Root opens it with the privileges of the folder's owner and rejects files of other users.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    with as_owner_of(path) as here:
        fd = os.open(here, flags | (os.O_CREAT if create else 0), disk.FILE_MODE)
        owner = os.geteuid()
    st = os.fstat(fd)
    if not stat.S_ISREG(st.st_mode) or (os.geteuid() == 0 and st.st_uid not in (0, owner)):
        os.close(fd)
        raise OSError(errno.EPERM, "the lock file was replaced", str(path))
    return fd
