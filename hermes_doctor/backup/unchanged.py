"""What a new backup can have in common with the one before: copies of files that did not change.

A file counts as unchanged when size, inode, time of modification and time of change are what they
were when it was read, and it had been left alone for a minute by then. A clock ticks coarsely, and
a program that writes through memory moves the times only now and then: a file that was written a
moment before it was read may have been written again without a trace. Such a file is read again,
and so is everything of which any of these is different; what turns out to be the same is shared
all the same.

What is shared is a second name for the earlier copy, never for the file in the home. A copy that is
no longer as long as it was, or that was written to after its backup was made, is not shared. Nor is
one that reads differently: at each backup a thirty-second of all that is shared, what was read
longest ago, is read again: all of it within a month of daily backups. So damage of a disk does not
spread unseen into every backup.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG

from hermes_doctor.backup import blocks, known_digests
from hermes_doctor.backup.entry import Entry
from hermes_doctor.backup.manifest import BASE, CHANGED, Backup, within
from hermes_doctor.backup.manifest_pages import Pages
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system import disk, privileges
from hermes_doctor.system.files import Snapshot, StrPath, read_head, snapshot

Log = tuple[int, ...]
SETTLED = 60 * 10**9
"""Nanoseconds for which a file must have been left alone when it was read."""
SHARE = 32
"""Of what is shared, that part is read again each time."""
AT_ONCE = 3
"""Copies that are read side by side."""
EXAMINED = 20 * 3600 * 10**9
"""After so long SQLite examines a large database in use again."""


def marks(taken: Snapshot, log: Log = ()) -> tuple[int, ...]:
    """What tells that a file, with its log if it has one, is the same; first when it was last
    changed. In an entry stands before them when they were seen."""
    last = max(taken.ctime_ns, log[0]) if log else taken.ctime_ns
    return (last, taken.ino, taken.size, taken.mtime_ns, taken.ctime_ns, *log)


def log_of(database: Path) -> Log:
    """What is different of the log of a database in use as soon as somebody has written.

    Its time of change says nothing: SQLite, run by root, sets the owner of a log that it opens.
    What it counts in the -shm file moves with every commit.
    """
    from hermes_doctor.sqlite.wal import Index

    log, index = (database.with_name(database.name + end) for end in ("-wal", "-shm"))
    taken = snapshot(log)
    try:
        living = Index.parse(read_head(index, 136)[0])
    except (FileNotFoundError, CouldNotLook):
        living = None
    counted = (living.change, living.committed) if living else (-1, -1)
    return (taken.mtime_ns, taken.ino, taken.size, *counted)


class Earlier:
    """The backup before, or none."""

    def __init__(self, backup: Backup | None) -> None:
        self.backup = backup
        entries = backup.entries if backup else ()
        if isinstance(entries, Pages):
            self._entry: Callable[[str], Entry | None] = lambda name: _file(entries.find(name))
            self.due = entries.longest_ago(SHARE)
        else:
            files = [one for one in entries if one.kind == "file"]
            self._entry = {entry.path: entry for entry in files}.get
            self.due = _due(files)
        """The copies whose turn it is to be read again, by the names of what they are of."""
        self._folders: dict[str, bool] = {}
        """Where names were made, and whether with our own rights."""
        self._read: dict[str, bool] = {}
        self._made = backup.created_at.timestamp() * 1e9 if backup else 0.0
        self.shared = False
        """Whether anything was not copied again."""
        self.wrong: set[str] = set()
        """Files whose copy turned out not to be what was saved."""

    def unchanged(self, name: str, marks: tuple[int, ...]) -> Entry | None:
        """The entry of a file that is still the same by all that can be seen of it."""
        entry = self._entry(name)
        if entry is None or entry.seen[1:] != marks:
            return None
        return entry if marks[0] < entry.seen[0] - SETTLED else None

    def like(self, name: str) -> Entry | None:
        """The entry of the same name."""
        return self._entry(name)

    def base(self, name: str, size: int) -> Path | None:
        """An earlier whole copy, for a file of that size to be compared with."""
        entry = self._entry(name)
        if self.backup is None or entry is None or min(size, entry.size) < blocks.LEAST:
            return None
        place = self.backup.copy_of(entry)
        place = place / BASE if entry.blocks else place
        return place if _is_file(place) else None

    def known(self, name: str) -> known_digests.Known:
        """The sums of the pieces of what `base` gives, as far as they can be relied on."""
        entry = self._entry(name)
        if self.backup is None or entry is None:
            return ()
        return known_digests.known(self.backup.copy_of(entry), entry)

    def give(self, entry: Entry, partial: Path) -> Entry | None:
        """Have the copy of an entry in a new backup too; None where that cannot be."""
        assert self.backup is not None
        place = within(entry.path, blocks=entry.blocks)
        ends = (f"/{BASE}", f"/{CHANGED}") if entry.blocks else ("",)
        old, new = f"{self.backup.folder}/{place}", f"{partial}/{place}"
        for end in ends:
            if not self._is_untouched(old + end, entry):
                return None
        contradicts = entry.pieces and known_digests.contradict(self.backup.copy_of(entry), entry)
        if contradicts or entry.path in self.due:
            read_at = time.time_ns()
            if not self.reads_right(entry):
                return None
            entry = entry._replace(read_at=read_at, pieces="" if contradicts else entry.pieces)
        for end in ends:
            if not self.link(old + end, new + end):
                for one in ends:
                    disk.remove(Path(new + one))
                return None
        self.shared = True
        return entry

    @contextmanager
    def reading_again(self, *, beside: bool) -> Iterator[Callable[[], None]]:
        """Read the copies whose turn it is in a process of its own; what is given waits for it.

        Threads would do, but for Python, which lets only one of them work. Not `beside`, each is
        read when it is needed.
        """
        due = [entry for name in sorted(self.due) if (entry := self._entry(name))]
        if not due or not beside:
            yield lambda: None
            return
        from hermes_doctor.system.workers import answer, child

        def read() -> str:
            with ThreadPoolExecutor(AT_ONCE) as readers:
                answers = readers.map(self._reads_right_now, due)
                return "".join("01"[right] for right in answers)

        @functools.cache
        def finished() -> None:
            with contextlib.suppress(CannotFix):  # then each is read when it is needed
                answers = zip(due, answer(other), strict=False)
                self._read = {entry.path: right == "1" for entry, right in answers}

        assert self.backup is not None
        with child(self.backup.folder, lambda _: read()) as other:
            yield finished

    def reads_right(self, entry: Entry) -> bool:
        """Whether the copy of an entry is still what was saved."""
        known = self._read.get(entry.path)
        right = self._reads_right_now(entry) if known is None else known
        if not right:
            self.wrong.add(entry.path)
        return right

    def _reads_right_now(self, entry: Entry) -> bool:
        assert self.backup is not None
        try:
            return blocks.digest_of(self.backup.copy_of(entry), entry) == entry.sha256
        except (CouldNotLook, OSError):
            return False

    def link(self, old: StrPath, new: StrPath) -> bool:
        """A second name for a copy; False on a drive, or with rights, that cannot."""
        folder = os.fspath(new).rpartition("/")[0]
        try:
            if folder not in self._folders:
                disk.make_folder(Path(folder), lasting=False)
                self._folders[folder] = privileges.of(old) is None and privileges.of(new) is None
            disk.share(old, new, own=self._folders[folder])
        except OSError:  # no room for a name is no room for the copy either, which will say so
            return False
        return True

    def gone(self, folder: Path) -> None:
        """A folder for names was removed; for the next one it has to be made again."""
        self._folders.pop(os.fspath(folder), None)

    def forget(self, most: int) -> None:
        """Let go of what can be found out again, if it is much."""
        if len(self._folders) > most:
            self._folders.clear()

    def _is_untouched(self, copy: StrPath, entry: Entry) -> bool:
        """Whether nobody has written to a copy since its backup was made, so far as it tells."""
        try:
            taken = os.lstat(copy)
        except OSError:
            return False
        as_long = entry.blocks or taken.st_size == entry.size
        return S_ISREG(taken.st_mode) and taken.st_mtime_ns <= self._made and as_long


def _file(entry: Entry | None) -> Entry | None:
    return entry if entry is not None and entry.kind == "file" else None


def _is_file(copy: Path) -> bool:
    try:
        return snapshot(copy).kind == "file"
    except CouldNotLook:
        return False


def _due(files: list[Entry]) -> set[str]:
    """The copies that are read again: those that were read longest ago.

    How many is told by those in one piece: of the others, what is older is compared anyway.
    """
    wanted, found = sum(entry.size for entry in files if not entry.blocks) / SHARE, set()
    for entry in sorted(files, key=lambda entry: (entry.read_at, entry.path)):
        if wanted <= 0:
            break
        found.add(entry.path)
        wanted -= entry.size
    return found


def examined_lately(entry: Entry | None) -> bool:
    """Whether SQLite has had a look at a database not long ago, and found it sound."""
    return (
        entry is not None
        and entry.integrity == "ok"
        and 0 <= time.time_ns() - entry.examined_at < EXAMINED
    )
