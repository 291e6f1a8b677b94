"""Paths that nobody can lead astray while root works in a folder of another user."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_DESCRIPTORS = Path("/proc/self/fd")


@contextmanager
def pinned(path: Path) -> Iterator[Path]:
    """The same path with its folder held by descriptor; plain for anybody but root.

    An ordinary user can only harm himself. Root follows a symlink on the way only to where
    the one who made it could have written as well.
    """
    if os.geteuid() != 0 or not _DESCRIPTORS.is_dir():
        yield path
        return
    fd = _walk(path.parent)
    try:
        yield _DESCRIPTORS / str(fd) / path.name
    finally:
        os.close(fd)


def _walk(folder: Path) -> int:
    """A descriptor on a folder, reached from the root one name at a time."""
    fd = os.open("/", _FLAGS)
    try:
        for name in folder.absolute().parts[1:]:
            step = _step(fd, name)
            os.close(fd)
            fd = step
    except BaseException:
        os.close(fd)
        raise
    return fd


def _step(fd: int, name: str) -> int:
    with contextlib.suppress(NotADirectoryError):
        return os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=fd)
    maker = os.stat(name, dir_fd=fd, follow_symlinks=False).st_uid
    there = os.open(name, _FLAGS, dir_fd=fd)
    if not (maker == 0 and _only_root_renames(fd)) and maker != os.fstat(there).st_uid:
        os.close(there)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return there


def _only_root_renames(fd: int) -> bool:
    """Whether what root has made in a folder can be swapped by nobody else."""
    folder = os.fstat(fd)
    shared = folder.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return folder.st_uid == 0 and (not shared or bool(folder.st_mode & stat.S_ISVTX))
