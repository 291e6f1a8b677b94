"""Find the databases of a home."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import snapshot


class DatabaseList(NamedTuple):
    """The existing databases, most important first, and those that could not be checked."""

    paths: tuple[Path, ...]
    unreadable: tuple[str, ...]
    missing: tuple[Path, ...] = ()
    """The paths at which there is no database."""


def find(home: Home) -> DatabaseList:
    """Check every path; one that cannot be checked does not hide the others."""
    paths: list[Path] = []
    missing: list[Path] = []
    doubts: list[str] = []
    for path in _places(home, doubts):
        try:
            (missing if snapshot(path).kind == "absent" else paths).append(path)
        except CouldNotLook as doubt:
            doubts.append(f"{home.name_of(path)}: {doubt}")
    return DatabaseList(tuple(paths), tuple(doubts), tuple(missing))


def _places(home: Home, doubts: list[str]) -> Iterator[Path]:
    try:
        yield from home.databases()
    except CouldNotLook as doubt:
        doubts.append(f"kanban/boards: {doubt}")


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def kind_of(path: Path) -> str | None:
    """Return what is at a path instead of a file, e.g. a folder; symlinks are followed."""
    try:
        st = os.stat(path)
    except OSError as error:
        return "a symlink that leads back to itself" if error.errno == errno.ELOOP else None
    what = _KINDS.get(stat.S_IFMT(st.st_mode))
    return f"a symlink to {what}" if what and os.path.islink(path) else what


def time_share(database_list: DatabaseList, small_bytes: int, seconds: float) -> float:
    """Return how many seconds one database may take, because large ones share the time."""
    large = 0
    for path in database_list.paths:
        try:
            large += os.stat(path).st_size > small_bytes
        except OSError:
            continue
    return seconds / max(1, large)
