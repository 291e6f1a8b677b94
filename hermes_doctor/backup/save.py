"""Save the files of a home into a backup, spread over several worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup import blocks, save_worker, unchanged
from hermes_doctor.backup.entry import BackupEntry
from hermes_doctor.backup.entry_spool import Lines
from hermes_doctor.backup.manifest import BackupSource
from hermes_doctor.backup.partial import Partial, Progress
from hermes_doctor.backup.read_errors import why_unreadable
from hermes_doctor.backup.save_database import DatabaseSaver, groups
from hermes_doctor.backup.save_file import FileSaver
from hermes_doctor.backup.source_list import AT_ONCE, batches
from hermes_doctor.backup.unchanged import PreviousBackup
from hermes_doctor.backup.unreadable_files import MissingFile
from hermes_doctor.home import SIDECARS, Home, is_database
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.system import disk, privileges, sparse_files, workers

if TYPE_CHECKING:
    from typing import Self

SHARES = 3
"""Processes that save many files in parallel, to keep the disk busy."""
MANY = 64
"""Number of files above which worker processes are used."""
OVERHEAD = 256 * 1024
"""Cost of saving any file, as the number of bytes that could be copied in the same time."""


LARGE = 64 * 1024
"""Bytes; only for larger files it is worth checking whether they are sparse."""


class BackupWriter:
    """Saves the files of one backup."""

    def __init__(
        self, home: Home, partial: Path, earlier: PreviousBackup, progress: Progress | None
    ) -> None:
        self.earlier = earlier
        self.partial = Partial(partial, earlier, progress)
        self.files = FileSaver(self.partial)
        self.databases = DatabaseSaver(home, self.files)
        self.missing: list[MissingFile] = []
        """Files that could not be read."""
        self._processes = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the worker processes."""
        self._processes.close()

    def all(self, sources: Sequence[BackupSource]) -> Sequence[BackupEntry]:
        """Save all sources; return their entries in order, then those of added sidecars.

        The entries of a large home are in no particular order, and on disk.
        """
        if len(sources) > AT_ONCE:
            lines = Lines(self.partial.folder)
            for found in self._found(sources):
                lines.add(found)
                self.partial.spill_lists()
            return lines
        saved = {entry.path: entry for found in self._found(sources) for entry in found}
        names = dict.fromkeys((*(source.name for source in sources), *saved))
        return tuple(saved[name] for name in names if name in saved)

    def _found(self, sources: Sequence[BackupSource]) -> Iterator[list[BackupEntry]]:
        """Save databases one by one, then share or save the other files, many in parallel."""
        own = self._own_rights(sources)
        databases = groups(source for source in sources if is_database(source.path_str))
        large = [group for group in databases if own and self._is_large(group)]
        slow = self._processes.enter_context(save_worker.start_worker(self, large))
        yield from (self.group(group) for group in databases if group not in large)
        with self.earlier.reread_due_copies(in_worker=own) as read:
            files = (source for source in sources if not is_database(source.path_str))
            for batch in batches(files):
                yield from self._batch(batch, read, slow, own=own)
        yield slow.wait_for_results()

    def _batch(
        self,
        files: list[BackupSource],
        read: Callable[[], None],
        slow: save_worker.SaveWorker,
        *,
        own: bool,
    ) -> Iterator[list[BackupEntry]]:
        """Share unchanged files, those with a copy being read again last; save the others."""
        due = self.earlier.due
        shared = {s.name: self.files.unchanged(s) for s in files if s.name not in due}
        read()
        shared |= {s.name: self.files.unchanged(s) for s in files if s.name in due}
        yield [entry for entry in shared.values() if entry]
        mine, *theirs = _shares([s for s in files if not shared[s.name]], SHARES if own else 1)
        with ExitStack() as processes:
            others = [
                processes.enter_context(save_worker.start_worker(self, share)) for share in theirs
            ]
            saved = []
            for group in mine:
                saved += self.group(group)
                for other in (slow, *others):
                    other.listen()
            yield saved
            yield from (other.wait_for_results() for other in others)

    def _is_large(self, group: Sequence[BackupSource]) -> bool:
        return any(source.content and source.expect.size >= blocks.MIN_SIZE for source in group)

    def _own_rights(self, sources: Sequence[BackupSource]) -> bool:
        """Whether everything is read and written with our own privileges.

        Other privileges apply to the whole process, so no parallel work is possible with them.
        """
        if os.geteuid() != 0:
            return True
        known = ""
        for source in sources:
            folder = source.path_str.rpartition("/")[0]
            if folder != known and privileges.of(f"{folder}/any") is not None:
                return False
            known = folder
        return privileges.of(f"{self.partial.folder}/any") is None

    def wanted(self, sources: Sequence[BackupSource]) -> int:
        """Bytes of disk space that the backup needs, with the logs of live databases."""
        size = 0
        for source in sources:
            taken = source.expect
            log = unchanged.log_marks(source.path) if source.live else ()
            if self.earlier.unchanged(source.name, unchanged.marks(taken, log)):
                continue
            whole = _room_of(source) + (log[2] if log else 0) if source.content else 0
            base = self.earlier.base(source.name, whole)
            size += int(whole * blocks.MAX_CHANGED_SHARE) if base else whole
        return size

    def read_back(self) -> list[str]:
        """Read all written copies back and return messages about those that differ."""
        own = self._own_rights([])
        return [
            text for written in self.partial.unread_lists() for text in self._wrong(written, own)
        ]

    def _wrong(self, written: list[tuple[str, str]], own: bool) -> list[str]:
        count = SHARES if own and len(written) > MANY else 1
        shares = [written[number::count] for number in range(count)]
        try:
            answers = workers.run_shares(
                shares, lambda share: "".join("01"[_reads(o)] for o in share)
            )
        except CannotFix as why:
            raise Trouble(
                text("Could not verify the backup ({reason}). Nothing was changed.", reason=why)
            ) from None
        wrong = [
            copy.removeprefix(f"{self.partial.folder}/")
            for share, answer in zip(shares, answers, strict=True)
            for (copy, _), right in zip(share, answer, strict=True)
            if right != "1"
        ]
        return [f"{name}: the copy differs from the file" for name in wrong]

    def group(self, group: Sequence[BackupSource]) -> list[BackupEntry]:
        """Save a database with its sidecars, or a single file.

        What cannot be read is noted as missing, for a database with all its files, because it is
        incomplete without its log. For a run it is an error: it needs every path it will change.
        """
        try:
            return self.databases.save(group)
        except (CouldNotLook, OSError) as error:
            why = why_unreadable(group, error) if group[0].patient else None
            if why is None:
                raise
        for source in group:
            for suffix in ("", *SIDECARS) if is_database(source.path_str) else ("",):
                with suppress(OSError):  # a path too long for a copy
                    self.partial.drop(source.name + suffix)
        self.missing += [MissingFile(source.name, why) for source in group]
        return []


def _room_of(source: BackupSource) -> int:
    """Bytes that a copy of a file takes; holes of a sparse file are not counted."""
    if source.expect.size < LARGE:
        return source.expect.size
    try:
        return sparse_files.allocated_bytes(os.lstat(source.path_str))
    except OSError:
        return source.expect.size


def _reads(one: tuple[str, str]) -> bool:
    """Whether a copy has the digest it was written with."""
    path, sha256 = one
    try:
        return disk.digest(path) == sha256
    except (CouldNotLook, OSError):
        return False


def _shares(files: Sequence[BackupSource], count: int) -> list[list[list[BackupSource]]]:
    """Split files into shares that take about the same time."""
    shares: list[list[list[BackupSource]]] = [[] for _ in range(count if len(files) > MANY else 1)]
    taken = [0] * len(shares)
    for source in sorted(files, key=lambda source: -source.expect.size):
        least = taken.index(min(taken))
        shares[least].append([source])
        taken[least] += source.expect.size + OVERHEAD
    return shares
