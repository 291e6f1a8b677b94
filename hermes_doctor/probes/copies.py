"""Copies of a database that Hermes or an operator left, and other signs of what it once held."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from hermes_doctor.files import listing
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.values import NamedTuple

MOST = 200


class Copy(NamedTuple):
    """A file that is, or once was, the same database."""

    path: Path
    size: int
    mtime_ns: int


def of(home: Home, path: Path) -> list[Copy]:
    """Other files that hold this database, newest first."""
    found: list[Copy] = []
    for place in _places(home, path):
        try:
            st = os.lstat(place)
        except OSError:
            continue
        if stat.S_ISREG(st.st_mode) and st.st_size > 4096:
            found.append(Copy(place, st.st_size, st.st_mtime_ns))
    return sorted(found, key=lambda copy: copy.mtime_ns, reverse=True)


def leftovers(path: Path) -> list[Copy]:
    """What Hermes put aside when it met this database damaged; each time the whole of it."""
    found = []
    for name in _names(path.parent):
        kept = name.startswith((f"{path.name}.malformed-backup-", f"{path.name}.corrupt."))
        if kept:
            try:
                st = os.lstat(path.parent / name)
            except OSError:
                continue
            found.append(Copy(path.parent / name, st.st_size, st.st_mtime_ns))
    return found


def sessions(home: Home) -> int:
    """How many files of sessions lie beside the database that holds them too."""
    names = _names(home / "sessions")
    return sum(name.endswith((".json", ".jsonl")) and name != "sessions.json" for name in names)


def _places(home: Home, path: Path) -> Iterator[Path]:
    for left in leftovers(path):
        if not left.path.name.endswith(("-wal", "-shm")):
            yield left.path
    snapshots = home / "state-snapshots"
    for name in _names(snapshots)[-MOST:]:
        yield snapshots / name / home.name_of(path)
    for name in _names(home.vault)[-MOST:]:
        yield home.vault / name / "files" / home.name_of(path)
    for name in _names(path.parent):
        if name.startswith(path.name + ".") and name.endswith((".bak", ".old", ".orig")):
            yield path.parent / name


def _names(folder: Path) -> list[str]:
    try:
        return listing(folder)
    except CouldNotLook:
        return []
