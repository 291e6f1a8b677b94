"""Judge what root has opened below a folder of another user, who may have put a link there."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook, Trouble
from hermes_doctor.system import privileges
from hermes_doctor.system.files import StrPath


def refuse_led_out(path: StrPath, fd: int) -> None:
    """Close an open file and raise CouldNotLook if a link of another user has led root to it.

    That user may replace anything in his folder. Root reads what is really in that folder, and
    what the user may read himself.
    """
    try:
        user = privileges.of(path)
    except Trouble:  # of a shared folder nobody knows who made the link
        return
    if user is None or _may_read(user, fd):
        return
    os.close(fd)
    raise CouldNotLook(
        text(
            "{file}: a link of another user (uid {uid}) leads to it, and that user may not read it",
            file=Path(path).name,
            uid=user.uid,
        )
    )


def _may_read(user: privileges.Privileges, fd: int) -> bool:
    """Whether an open file is really in the folder of a user, or the user may read it."""
    real = os.readlink(f"/proc/self/fd/{fd}")
    folder = f"{os.path.realpath(user.folder)}/"
    st = os.fstat(fd)
    if real.startswith(folder) and (st.st_uid == user.uid or st.st_nlink == 1):
        return True
    with contextlib.suppress(OSError):
        enters = (_may(user, os.stat(place), stat.S_IXOTH) for place in Path(real).parents)
        return all(enters) and _may(user, st, stat.S_IROTH)
    return False


def _may(user: privileges.Privileges, st: os.stat_result, right: int) -> bool:
    """Whether a user has a right, given as that of all others, by the mode of a file."""
    if st.st_uid == user.uid:
        right <<= 6
    elif st.st_gid in (user.gid, *user.groups):
        right <<= 3
    return bool(st.st_mode & right)
