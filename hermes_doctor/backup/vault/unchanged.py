"""Share copies of unchanged files between a new backup and the previous one.

A file counts as unchanged if its size, inode, mtime and ctime are the same as when it was read, and
it had not been changed for a minute by then. Clocks are coarse, and a program that writes through a
memory map updates the times only now and then: a file that was written just before it was read may
have been written again unnoticed. Such a file is read again, and so is every file with other marks;
if its content is the same, the copy is shared anyway.

A shared copy is a hard link to the earlier copy, never to the file in the home. A copy with another
size, or that was written to after its backup was made, is not shared. Nor is a damaged one: each
backup reads 1/32 of all shared data again, that which was read longest ago, so all of it is read
within a month of daily backups. So disk damage does not spread unnoticed into every backup.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from hermes_doctor.backup.vault import blocks
from hermes_doctor.backup.vault.large_manifest import PagedEntries, chunks
from hermes_doctor.backup.vault.manifest import (
    BASE,
    CHANGED,
    Backup,
    BackupEntry,
    place_of,
    relative_place,
)
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import disk, privileges
from hermes_doctor.core.system.files import Snapshot, StrPath, read_head, snapshot

Log = tuple[int, ...]
SETTLED = 60 * 10**9
"""Nanoseconds for which a file must have been unchanged when it was read."""
SHARE = 32
"""One in so many shared bytes is read again each time."""
AT_ONCE = 3
"""How many copies are read in parallel."""
EXAMINED = 20 * 3600 * 10**9
"""Nanoseconds after which SQLite checks a large database in use again."""


def marks(state: Snapshot, log: Log = ()) -> tuple[int, ...]:
    """The marks that identify the version of a file and its log; the first is the last change.

    In an entry they follow the time at which they were seen.
    """
    last = max(state.ctime_ns, log[0]) if log else state.ctime_ns
    return (last, state.ino, state.size, state.mtime_ns, state.ctime_ns, *log)


def log_marks(database: Path) -> Log:
    """The marks of a database's log, which change as soon as a process writes to the database.

    The ctime is not among them: SQLite run by root sets the owner of a log that it opens. The
    counters in the -shm file change with every commit.
    """
    from hermes_doctor.sqlite.wal import ShmHeader

    log, index = (database.with_name(database.name + end) for end in ("-wal", "-shm"))
    state = snapshot(log)
    try:
        living = ShmHeader.parse(read_head(index, 136)[0])
    except (FileNotFoundError, CouldNotLook):
        living = None
    counted = (living.change, living.committed) if living else (-1, -1)
    return (state.mtime_ns, state.ino, state.size, *counted)


class PreviousBackup:
    """The previous backup, if any, whose copies a new backup can share."""

    def __init__(self, backup: Backup | None) -> None:
        self.backup = backup
        self.due: set[str]
        """The names of files whose copies are due to be read again."""
        entries = backup.entries if backup else ()
        if isinstance(entries, PagedEntries):
            self._entry: Callable[[str], BackupEntry | None] = lambda name: _file(
                entries.find(name)
            )
            self.due = entries.longest_ago(SHARE)
        else:
            files = [entry for entry in entries if entry.kind == "file"]
            self._entry = {entry.path: entry for entry in files}.get
            self.due = _due(files)
        self._folders: dict[str, bool] = {}
        """The folders in which links were made, and whether with our own privileges."""
        self._read: dict[str, bool] = {}
        self._made = backup.created_at.timestamp() * 1e9 if backup else 0.0
        self.shared = False
        """Whether any copy was shared."""
        self.wrong: set[str] = set()
        """Files whose earlier copy turned out to be damaged."""

    def unchanged(self, name: str, marks: tuple[int, ...]) -> BackupEntry | None:
        """The entry of a file that is unchanged according to its marks; else None."""
        entry = self._entry(name)
        if entry is None or entry.seen[1:] != marks:
            return None
        return entry if marks[0] < entry.seen[0] - SETTLED else None

    def like(self, name: str) -> BackupEntry | None:
        """The entry of the same file in the previous backup, or None."""
        return self._entry(name)

    def base(self, name: str, size: int) -> Path | None:
        """The earlier whole copy to compare a large file with, or None."""
        entry = self._entry(name)
        if self.backup is None or entry is None or min(size, entry.size) < blocks.MIN_SIZE:
            return None
        place = self.backup.copy_of(entry)
        place = place / BASE if entry.blocks else place
        with contextlib.suppress(CouldNotLook):
            return place if snapshot(place).kind == "file" else None
        return None

    def chunk_digests(self, name: str) -> blocks.ChunkDigests:
        """The checked chunk digests of the copy that `base` returns."""
        entry = self._entry(name)
        if self.backup is None or entry is None:
            return ()
        return blocks.chunk_digests(self.backup.copy_of(entry), entry)

    def share_copy(self, entry: BackupEntry, partial: Path) -> BackupEntry | None:
        """Link the copy of an entry into a new backup; return None if that is not possible."""
        assert self.backup is not None
        place = relative_place(entry.path, blocks=entry.blocks)
        ends = (f"/{BASE}", f"/{CHANGED}") if entry.blocks else ("",)
        old, new = f"{self.backup.folder}/{place}", f"{partial}/{place}"
        for end in ends:
            if not self._is_untouched(old + end, entry):
                return None
        contradicts = entry.pieces and blocks.contradicts(self.backup.copy_of(entry), entry)
        if contradicts or entry.path in self.due:
            read_at = time.time_ns()
            if not self.is_copy_intact(entry):
                return None
            entry = entry._replace(read_at=read_at, pieces="" if contradicts else entry.pieces)
        for end in ends:
            if not self.link(old + end, new + end):
                for suffix in ends:
                    disk.remove(Path(new + suffix))
                return None
        self.shared = True
        return entry

    @contextmanager
    def reread_due_copies(self, *, in_worker: bool) -> Iterator[Callable[[], None]]:
        """Read the copies that are due in a worker process; yield a function that waits for it.

        A process, because threads would compete for Python's GIL. Without `in_worker`, each copy is
        read when it is needed.
        """
        due = [entry for name in sorted(self.due) if (entry := self._entry(name))]
        if not due or not in_worker:
            yield lambda: None
            return
        from hermes_doctor.core.system.workers import start_worker, wait_for_result

        def read() -> str:
            with ThreadPoolExecutor(AT_ONCE) as readers:
                answers = readers.map(self._reads_right_now, due)
                return "".join("01"[right] for right in answers)

        @functools.cache
        def finished() -> None:
            with contextlib.suppress(CannotFix):  # then each is read when it is needed
                answers = zip(due, wait_for_result(other), strict=False)
                self._read = {entry.path: right == "1" for entry, right in answers}

        assert self.backup is not None
        with start_worker(self.backup.folder, lambda _: read()) as other:
            yield finished

    def is_copy_intact(self, entry: BackupEntry) -> bool:
        """Whether the copy of an entry is undamaged."""
        known = self._read.get(entry.path)
        right = self._reads_right_now(entry) if known is None else known
        if not right:
            self.wrong.add(entry.path)
        return right

    def _reads_right_now(self, entry: BackupEntry) -> bool:
        assert self.backup is not None
        try:
            return blocks.digest_of(self.backup.copy_of(entry), entry) == entry.sha256
        except (CouldNotLook, OSError):
            return False

    def link(self, old: StrPath, new: StrPath) -> bool:
        """Make a hard link to a copy; False if the disk or our privileges do not allow it."""
        folder = os.fspath(new).rpartition("/")[0]
        try:
            if folder not in self._folders:
                disk.make_folder(Path(folder), durable=False)
                self._folders[folder] = privileges.of(old) is None and privileges.of(new) is None
            disk.link_into_folder(old, new, own=self._folders[folder])
        except OSError:  # if the disk is full, the copy that follows will report it
            return False
        return True

    def forget_folder(self, folder: Path) -> None:
        """Note that a folder was removed, so it is created again for the next link."""
        self._folders.pop(os.fspath(folder), None)

    def forget(self, limit: int) -> None:
        """Clear the cache of folders if it has more than `limit`."""
        if len(self._folders) > limit:
            self._folders.clear()

    def _is_untouched(self, copy: StrPath, entry: BackupEntry) -> bool:
        """Whether a copy's size and mtime show no change since its backup was made."""
        try:
            state = os.lstat(copy)
        except OSError:
            return False
        as_long = entry.blocks or state.st_size == entry.size
        return S_ISREG(state.st_mode) and state.st_mtime_ns <= self._made and as_long


def _file(entry: BackupEntry | None) -> BackupEntry | None:
    return entry if entry is not None and entry.kind == "file" else None


def _due(files: list[BackupEntry]) -> set[str]:
    """The copies to read again: those that were read longest ago.

    The amount is a share of the whole copies: the base of a copy in blocks is compared anyway.
    """
    wanted, due = sum(entry.size for entry in files if not entry.blocks) / SHARE, set()
    for entry in sorted(files, key=lambda entry: (entry.read_at, entry.path)):
        if wanted <= 0:
            break
        due.add(entry.path)
        wanted -= entry.size
    return due


def was_checked_recently(entry: BackupEntry | None) -> bool:
    """Whether SQLite checked a database recently and found it sound."""
    return (
        entry is not None
        and entry.integrity == "ok"
        and 0 <= time.time_ns() - entry.examined_at < EXAMINED
    )


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
