"""Older copies of a database that lie about in a home: Hermes' snapshots, its backups, ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hermes_doctor.files import listing, read_head, snapshot
from hermes_doctor.home import Home
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite.header import MAGIC

MOST = 60
"""Copies looked at, newest first; whoever has more has enough."""


@dataclass(frozen=True)
class DatabaseCopy:
    """One copy that begins as a database does; whether it is sound nobody has looked at yet."""

    path: Path
    label: str
    modified: datetime
    size: int


def find(home: Home, database: Path) -> list[DatabaseCopy]:
    """The copies of one database, newest first."""
    found = []
    for path in _places(home, database):
        try:
            taken = snapshot(path)
            if taken.kind != "file" or read_head(path, 16)[0] != MAGIC:
                continue
        except (CouldNotLook, OSError):
            continue
        modified = datetime.fromtimestamp(taken.mtime_ns / 1e9, UTC)
        found.append(DatabaseCopy(path, home.name_of(path), modified, taken.size))
    return sorted(found, key=lambda one: one.modified, reverse=True)[:MOST]


def _places(home: Home, database: Path) -> Iterator[Path]:
    name = home.name_of(database)
    folders = [home.path / "state-snapshots" / one for one in _names(home.path / "state-snapshots")]
    folders += [home.vault / one / "files" for one in _names(home.vault)]
    for folder in folders:
        yield folder / name
    for beside in _names(database.parent):
        kept = (f"{database.name}.malformed-backup-", f"{database.name}.corrupt.")
        if beside.startswith(kept) and not beside.endswith(("-wal", "-shm", "-journal")):
            yield database.parent / beside


def _names(folder: Path) -> list[str]:
    try:
        return listing(folder) if os.path.isdir(folder) else []
    except CouldNotLook:
        return []
