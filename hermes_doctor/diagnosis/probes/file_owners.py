"""Find files of a home that the gateway may not read or write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hermes_doctor.core.home import Home, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import Snapshot, list_folder
from hermes_doctor.core.system.mounts import FileUser

DEPTH, MOST = 2, 4000
"""How deep and how far a quick check goes; a deep one goes everywhere."""
_DEEPEST, _ALL = 12, 200_000
_SKIPPED = frozenset(
    (
        *("hermes-agent", "node_modules", "node", "venv", ".venv", "backups", "profiles"),
        *("cache", "image_cache", "audio_cache", "checkpoints", "state-snapshots", "lost+found"),
    )
)
"""Code, caches and copies, which the gateway does not write, and other homes."""


class ClosedFile(NamedTuple):
    """A file or folder that the gateway's user may not read or write."""

    path: Path
    snapshot: Snapshot
    readable: bool


class OwnerScan(NamedTuple):
    """The result of the search for files that the gateway may not use."""

    closed: tuple[ClosedFile, ...]
    seen: int
    whole: bool
    """Whether the search was completed."""


def find(home: Home, user: FileUser, *, deep: bool) -> OwnerScan:
    """Find everything that the gateway's user may not read or write, except databases."""
    if user.uid == 0:
        return OwnerScan((), 0, True)
    depth, most = (_DEEPEST, _ALL) if deep else (DEPTH, MOST)
    closed: list[ClosedFile] = []
    folders = [(home.path, 0)]
    seen = 0
    while folders:
        folder, level = folders.pop()
        try:
            names = list_folder(folder, most)
        except CouldNotLook:
            continue
        for name in names:
            path = folder / name
            try:
                st = os.lstat(path)
            except OSError:
                continue
            seen += 1
            if seen > most:
                return OwnerScan(tuple(closed), seen, False)
            is_folder = stat.S_ISDIR(st.st_mode)
            if is_folder and (name in _SKIPPED or os.path.ismount(path)):
                continue
            if not is_folder and (not stat.S_ISREG(st.st_mode) or is_database(path)):
                continue
            if is_folder and level < depth:
                folders.append((path, level + 1))
            snapshot = Snapshot.of(st)
            readable = _may(user, snapshot, 0o4)
            if not readable or not _may(user, snapshot, 0o2):
                closed.append(ClosedFile(path, snapshot, readable))
    return OwnerScan(tuple(closed), seen, True)


def _may(user: FileUser, snapshot: Snapshot, right: int) -> bool:
    """Tell whether the mode grants a permission; an owner can always change the mode."""
    if snapshot.uid == user.uid:
        return True
    return bool(snapshot.mode & (right << 3 if snapshot.gid in user.gids else right))
