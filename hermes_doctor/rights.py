"""Whose rights root works with: those of whoever owns the place that it works in.

A home's owner can swap any folder of his for a symlink at any moment. With his own rights he
can lead us only where he could have gone himself, and what we make is his from the start.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

_NOBODY = 65534


@dataclass(frozen=True)
class Rights:
    """A user with his groups."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    reaches: bool = True
    """Whether he can get there at all. Into a folder that root keeps closed (a container's
    volume, seen from outside) root goes by itself, and gives him what it makes."""

    def take(self) -> None:
        """Become that user for good; for a child process."""
        os.setgroups(self.groups)
        os.setresgid(self.gid, self.gid, self.gid)
        os.setresuid(self.uid, self.uid, self.uid)


def of(path: Path) -> Rights | None:
    """Whose rights to use for a path; None for our own.

    Down from the root, every folder that is root's alone can be trusted to stay what it is. The
    first that belongs to somebody else decides.
    """
    if os.geteuid() != 0:
        return None
    return _of(Path(os.path.abspath(path)).parent, links=40)


def _of(folder: Path, links: int) -> Rights | None:
    parts = folder.parts
    for length in range(1, len(parts) + 1):
        place = Path(*parts[:length])
        try:
            st = os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            return None  # nobody's yet: whoever makes it owns it
        if st.st_uid != 0:
            return _user(st, place)
        if stat.S_ISLNK(st.st_mode):
            if not links:
                raise OSError(40, os.strerror(40), str(place))
            target = place.parent / os.readlink(place)
            rest = Path(os.path.normpath(target), *parts[length:])
            return _of(rest, links - 1)
        shared = st.st_mode & stat.S_IWOTH or (st.st_mode & stat.S_IWGRP and st.st_gid != 0)
        if shared and not st.st_mode & stat.S_ISVTX:
            raise PermissionError(1, "a folder of root's that others may write to", str(place))
    return None


def _user(st: os.stat_result, place: Path) -> Rights:
    """The owner, in the folder's group where he is a member of it."""
    import pwd

    try:
        entry = pwd.getpwuid(st.st_uid)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        gid = st.st_gid if st.st_gid in groups else entry.pw_gid
    except KeyError:  # a uid without a name, as in containers
        gid = st.st_gid or _NOBODY
        groups = [gid]
    user = Rights(st.st_uid, gid, tuple(groups))
    with _as(user):
        reaches = os.access(place.parent, os.X_OK, effective_ids=True)
    return replace(user, reaches=reaches)


@contextmanager
def acting_for(path: Path) -> Iterator[Rights | None]:
    """Work on a path with the rights that fit it; whom what is made there must be given to."""
    user = of(path)
    if user is None:
        yield None
    elif not user.reaches:
        yield user
    else:
        with _as(user):
            yield None


@contextmanager
def _as(rights: Rights) -> Iterator[None]:
    gid, groups = os.getegid(), os.getgroups()
    try:
        os.setgroups(rights.groups)
        os.setegid(rights.gid)
        os.seteuid(rights.uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        os.setgroups(groups)


def give(path: Path, uid: int, gid: int) -> None:
    """Change an owner as root where the owner of the place may not.

    Only a plain file without a second name, and only between that owner and root: a hard link
    to somebody's file, or a third user's uid in a forged receipt, is not given away.
    """
    rights = of(path)
    if rights is None or not rights.reaches:
        os.chown(path, uid, gid, follow_symlinks=False)
        return
    with acting_for(path):
        with contextlib.suppress(PermissionError):
            os.chown(path, uid, gid, follow_symlinks=False)
            return
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fd = os.open(path.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            st = os.fstat(fd)
            plain = stat.S_ISREG(st.st_mode) and st.st_nlink == 1
            if not plain or {uid, st.st_uid} - {rights.uid, 0}:
                raise PermissionError(1, os.strerror(1), str(path))
            os.chown(f"/proc/self/fd/{fd}", uid, gid)
        finally:
            os.close(fd)
    finally:
        os.close(folder)
