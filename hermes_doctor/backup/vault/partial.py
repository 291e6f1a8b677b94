"""The folder of an unfinished backup, and the list of files written to it."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from hermes_doctor.backup.vault.large_manifest import chunks
from hermes_doctor.backup.vault.manifest import BASE, CHANGED, place_of, relative_place
from hermes_doctor.backup.vault.unchanged import PreviousBackup
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import StrPath

Progress = Callable[[int], None]
MANY = 4096
"""How many files are listed in memory; more are written to disk."""
UNREAD = "unread-"
"""The prefix of the files that list copies which must still be read back."""


class Partial:
    """An unfinished backup."""

    def __init__(self, folder: Path, earlier: PreviousBackup, progress: Progress | None) -> None:
        self.folder = folder
        self.earlier = earlier
        self.progress = progress
        self.unread: dict[str, str] = {}
        """Copies that were written but not read back yet, with their digests."""
        self.fresh: set[str] = set()
        """Copies that must be synced to disk."""
        self.alone = False
        """Whether this is a worker process, which may crash without harm."""
        self._folders: set[str] = set()
        self._away = 0
        """How many lists of `unread` were written to disk."""

    def begin_blocks(self, name: str, base: Path | None) -> Path | None:
        """Link the base of a file into the backup; return the path for its changes, or None."""
        if base is None:
            return None
        folder = place_of(self.folder, name, blocks=True)
        return folder / CHANGED if self.earlier.link(base, folder / BASE) else None

    def place(self, name: str) -> str:
        """The path for the copy of a file; its folder is created if needed."""
        copy = f"{self.folder}/{relative_place(name)}"
        folder = copy.rpartition("/")[0]
        if folder not in self._folders:
            disk.make_folder(Path(folder), durable=False)
            self._folders.add(folder)
        return copy

    def note_written(self, copy: StrPath, sha256: str, *, read_back: bool = False) -> None:
        """Note that a copy must be synced, and read back unless that was done."""
        self.fresh.add(os.fspath(copy))
        if not read_back:
            self.unread[os.fspath(copy)] = sha256

    def spill_lists(self) -> None:
        """Write long lists of files to disk to free memory."""
        if len(self.unread) > MANY:
            listed = json.dumps(list(self.unread.items())).encode()
            disk.save(self.folder / f"{UNREAD}{self._away}", listed)
            self._away += 1
            self.unread = {}
        if len(self.fresh) > MANY:  # for so many files the whole disk is synced anyway
            self.fresh = set(itertools.islice(self.fresh, disk.FEW + 1))
        if len(self._folders) > MANY:
            self._folders.clear()
        self.earlier.forget(MANY)

    def unread_lists(self) -> Iterator[list[tuple[str, str]]]:
        """Yield lists of all copies that were not read back yet, with their digests."""
        for number in range(self._away):
            path = self.folder / f"{UNREAD}{number}"
            yield [(copy, sha256) for copy, sha256 in json.loads(b"".join(chunks(path)))]
            disk.remove(path)
        if self.unread:
            yield list(self.unread.items())

    def drop(self, name: str) -> None:
        """Remove what was saved of a path."""
        folder = place_of(self.folder, name, blocks=True)
        for path in (place_of(self.folder, name), folder / BASE, folder / CHANGED):
            disk.remove(path)
            self.unread.pop(str(path), None)
            self.fresh.discard(str(path))
        disk.remove_folder(folder)
        self.earlier.forget_folder(folder)
