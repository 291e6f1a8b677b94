"""Open a file for reading, but as root never one that the owner of the home could not read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system import privileges, root_parent
from hermes_doctor.system.files import StrPath, open_regular, reason


def open_owned(path: StrPath) -> int:
    """Open a file of a home for reading; as root, only if it belongs to the home's owner.

    He may replace any folder in his home by a symlink to somewhere else. So root opens the file
    without reading it, compares whose it is, and only then reads this very file.
    """
    owner = privileges.of(path)
    if owner is None:
        return open_regular(path, follow=False)
    name = os.path.basename(path)
    try:
        handle = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CouldNotLook(reason(error, Path(path))) from error
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode):
            raise CouldNotLook(text("{file}: not a regular file", file=name))
        if st.st_uid != owner.uid:
            raise CouldNotLook(
                text(
                    "{file}: belongs to uid {uid}, not to the owner of the home (uid {owner})",
                    file=name,
                    uid=st.st_uid,
                    owner=owner.uid,
                )
            )
        return open_regular(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)


def open_file_of_process(pid: int, fd: str, database: Path) -> int:
    """Open a file that a process has open, for reading; OSError if the process closed it.

    `database` is the path in the home that the file belongs to. The owner of the home controls
    the process and may have mounted any file of the machine over that path. So root reads only
    what belongs to this owner, and checks the owner before it opens the file for reading.
    """
    owner = privileges.of(database)
    try:
        handle = os.open(f"/proc/{pid}/fd/{fd}", os.O_PATH | os.O_CLOEXEC)
    except PermissionError:  # a process of root
        if not root_parent.is_separate():
            raise
        return int(root_parent.ask_root("open_of_process", pid, fd))
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode):
            raise CannotFix(
                text(
                    "The {database} that process {pid} has open is not a file. Stop that "
                    "process first.",
                    database=database.name,
                    pid=pid,
                )
            )
        if owner is not None and st.st_uid != owner.uid:
            raise CannotFix(
                text(
                    "The {database} that process {pid} has open belongs to uid {uid}, not to the "
                    "owner of the home (uid {owner}), so root does not read it. Stop that process "
                    "first.",
                    database=database.name,
                    pid=pid,
                    uid=st.st_uid,
                    owner=owner.uid,
                )
            )
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(handle)


def open_for_owner(owner: int, pid: int, fd: int) -> int:
    """Open a file of the owner that a process has open, which may be root's; for reading."""
    try:
        handle = os.open(f"/proc/{pid}/fd/{fd}", os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise CannotFix(
            text("Process {pid} has closed the file. Run the check again.", pid=pid)
        ) from error
    try:
        st = os.fstat(handle)
        if not stat.S_ISREG(st.st_mode) or st.st_uid != owner:
            raise CannotFix(
                text("Root opens only files of the owner of the home (uid {owner}).", owner=owner)
            )
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(handle)
