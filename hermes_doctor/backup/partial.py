"""The folder of a backup while it is made, and what was written there."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes_doctor.backup.entry_spool import chunks
from hermes_doctor.backup.manifest import BASE, CHANGED, place_of, within
from hermes_doctor.backup.unchanged import Earlier
from hermes_doctor.system import disk
from hermes_doctor.system.files import StrPath

if TYPE_CHECKING:
    from hermes_doctor.backup.entry import Entry
    from hermes_doctor.backup.manifest import Source
    from hermes_doctor.backup.unreadable_files import Missing

Progress = Callable[[int], None]
MANY = 4096
"""Files that are remembered in memory."""
UNREAD = "unread-"
"""What the names of the lists of files start with that are to be read back."""


class Partial:
    """A backup that is not finished."""

    def __init__(self, folder: Path, earlier: Earlier, progress: Progress | None) -> None:
        self.folder = folder
        self.earlier = earlier
        self.progress = progress
        self.unread: dict[str, str] = {}
        """What was written and not read back so far, each with its hash."""
        self.fresh: set[str] = set()
        """What was written and has to be brought onto the disk."""
        self.alone = False
        """Whether this process does nothing else, and may end by what it meets."""
        self._folders: set[str] = set()
        self._away = 0
        """How many lists of `unread` were put away."""

    def begin_blocks(self, name: str, base: Path | None) -> Path | None:
        """Where the changes of a file go, beside a name for what they are against."""
        if base is None:
            return None
        folder = place_of(self.folder, name, blocks=True)
        return folder / CHANGED if self.earlier.link(base, folder / BASE) else None

    def place(self, name: str) -> str:
        """Where the copy of a file goes, in a folder that is there."""
        copy = f"{self.folder}/{within(name)}"
        folder = copy.rpartition("/")[0]
        if folder not in self._folders:
            disk.make_folder(Path(folder), lasting=False)
            self._folders.add(folder)
        return copy

    def written(self, copy: StrPath, sha256: str, *, read_back: bool = False) -> None:
        """Remember what has to be brought onto the disk, and read back unless it was."""
        self.fresh.add(os.fspath(copy))
        if not read_back:
            self.unread[os.fspath(copy)] = sha256

    def put_away(self) -> None:
        """Move what is remembered of many files to the disk, where it takes no memory."""
        if len(self.unread) > MANY:
            listed = json.dumps(list(self.unread.items())).encode()
            disk.save(self.folder / f"{UNREAD}{self._away}", listed)
            self._away += 1
            self.unread = {}
        if len(self.fresh) > MANY:  # then the whole disk is synced anyway
            self.fresh = set(itertools.islice(self.fresh, disk.FEW + 1))
        if len(self._folders) > MANY:
            self._folders.clear()
        self.earlier.forget(MANY)

    def written_all(self) -> Iterator[list[tuple[str, str]]]:
        """What was written and not read back so far, each with its hash, in lists."""
        for number in range(self._away):
            path = self.folder / f"{UNREAD}{number}"
            yield [(copy, sha256) for copy, sha256 in json.loads(b"".join(chunks(path)))]
            disk.remove(path)
        if self.unread:
            yield list(self.unread.items())

    def drop(self, name: str) -> None:
        """Take away what was saved of a path."""
        folder = place_of(self.folder, name, blocks=True)
        for path in (place_of(self.folder, name), folder / BASE, folder / CHANGED):
            disk.remove(path)
            self.unread.pop(str(path), None)
            self.fresh.discard(str(path))
        disk.remove_folder(folder)
        self.earlier.gone(folder)


class Saver(Protocol):
    """Whoever saves files into an unfinished backup."""

    made: Partial
    earlier: Earlier
    missing: list[Missing]

    def group(self, group: Sequence[Source]) -> list[Entry]:
        """Save a database with its sidecars, or a single file."""
