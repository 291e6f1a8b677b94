"""Find the folder of a file that the user named, without following links of other users.

Each folder is opened from the one above it, so nobody can swap one for a link meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble

_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40


class NamedPath(NamedTuple):
    """An open folder, and the name in it that is meant; the name is not a link."""

    fd: int
    name: str
    path: Path
    """The path without links."""
    folders: list[int]
    """All folders on the way, open, from `/` to the one that is meant."""
    found: os.stat_result | None
    """What has the name; None if nothing has it."""


@contextmanager
def open_folder_of(path: Path) -> Iterator[NamedPath]:
    """Open the folder of a path; raise OSError if that is not possible.

    Raise Trouble at a link that another user made, who could lead us anywhere.
    """
    parts = os.path.join(os.getcwd(), path).split("/")[1:]
    folders, names, links = [os.open("/", _FOLDER)], [""], 0
    try:
        while True:
            name = parts.pop(0)
            if name in ("", "."):
                pass
            elif name == "..":
                if len(folders) > 1:
                    os.close(folders.pop())
                    names.pop()
            else:
                found, target = _look(folders[-1], name, Path("/".join([*names, name])))
                if target is not None:
                    links += 1
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                    if target.startswith("/"):
                        while len(folders) > 1:
                            os.close(folders.pop())
                            names.pop()
                    parts = [*target.split("/"), *parts]
                    continue
                if not parts:
                    place = Path("/".join([*names, name]))
                    yield NamedPath(folders[-1], name, place, folders, found)
                    return
                folders.append(os.open(name, _FOLDER, dir_fd=folders[-1]))
                names.append(name)
            if not parts:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    finally:
        for fd in folders:
            os.close(fd)


def _look(folder: int, name: str, place: Path) -> tuple[os.stat_result | None, str | None]:
    """What has this name in a folder, and where it leads to if it is a link that may be followed.

    Root follows links of root only; everybody else also follows his own.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None, None
    if not stat.S_ISLNK(found.st_mode):
        return found, None
    if not hasattr(os, "O_PATH"):
        target = os.readlink(name, dir_fd=folder)
    else:
        link = os.open(name, _PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(link)  # this link cannot be swapped any more
            target = os.readlink("", dir_fd=link)
        finally:
            os.close(link)
    if found.st_uid not in (0, os.geteuid()):
        raise Trouble(
            "{path} is a link that belongs to another user (uid {uid}), so it was not "
            "followed. Name the place that it leads to.",
            path=place,
            uid=found.st_uid,
        )
    return found, target
