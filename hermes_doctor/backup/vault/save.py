"""Save the files of a home into a backup, spread over several worker processes.

Comparing, hashing and examining a large database takes as long as all the rest. Many files are
split between workers, too; threads would only wait for each other because of Python's GIL.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.vault import blocks, unchanged
from hermes_doctor.backup.vault.large_manifest import Lines
from hermes_doctor.backup.vault.manifest import BackupEntry, BackupSource, entries_of
from hermes_doctor.backup.vault.save_database import DatabaseSaver, groups
from hermes_doctor.backup.vault.save_file import FileSaver
from hermes_doctor.backup.vault.source_list import AT_ONCE, batches
from hermes_doctor.backup.vault.unchanged import Partial, PreviousBackup, Progress
from hermes_doctor.backup.vault.unreadable_files import (
    MissingFile,
    os_error_reason,
    reason_without_name,
)
from hermes_doctor.core.home import SIDECARS, Home, is_database
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import disk, privileges, sparse_files, workers
from hermes_doctor.core.system.files import MEGABYTE, open_regular
from hermes_doctor.core.system.privileges import as_owner_of_str_path

if TYPE_CHECKING:
    from typing import Self

    from hermes_doctor.core.system.workers import Worker


SHARES = 3
"""Processes that save many files in parallel, to keep the disk busy."""
MANY = 64
"""Number of files above which worker processes are used."""
OVERHEAD = 256 * 1024
"""Cost of saving any file, as the number of bytes that could be copied in the same time."""
LARGE = 64 * 1024
"""Bytes; only for larger files it is worth checking whether they are sparse."""
STEP = 16 * MEGABYTE
"""Bytes between two progress messages."""
Groups = Sequence[Sequence[BackupSource]]


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
            for entries in self._found(sources):
                lines.add(entries)
                self.partial.spill_lists()
            return lines
        saved = {entry.path: entry for entries in self._found(sources) for entry in entries}
        names = dict.fromkeys((*(source.name for source in sources), *saved))
        return tuple(saved[name] for name in names if name in saved)

    def _found(self, sources: Sequence[BackupSource]) -> Iterator[list[BackupEntry]]:
        """Save databases one by one, then share or save the other files, many in parallel."""
        own = self._own_rights(sources)
        databases = groups(source for source in sources if is_database(source.path_str))
        large = [
            group
            for group in databases
            if own and any(s.content and s.expect.size >= blocks.MIN_SIZE for s in group)
        ]
        slow = self._processes.enter_context(start_worker(self, large))
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
        slow: SaveWorker,
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
            others = [processes.enter_context(start_worker(self, share)) for share in theirs]
            saved = []
            for group in mine:
                saved += self.group(group)
                for other in (slow, *others):
                    other.listen()
            yield saved
            yield from (other.wait_for_results() for other in others)

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
            state = source.expect
            log = unchanged.log_marks(source.path) if source.live else ()
            if self.earlier.unchanged(source.name, unchanged.marks(state, log)):
                continue
            whole = _room_of(source) + (log[2] if log else 0) if source.content else 0
            base = self.earlier.base(source.name, whole)
            size += int(whole * blocks.MAX_CHANGED_SHARE) if base else whole
        return size

    def read_back(self) -> list[str]:
        """Read all written copies back and return messages about those that differ."""
        own = self._own_rights([])
        lists = self.partial.unread_lists()
        return [text for written in lists for text in self._wrong(written, own)]

    def _wrong(self, written: list[tuple[str, str]], own: bool) -> list[str]:
        count = SHARES if own and len(written) > MANY else 1
        shares = [written[number::count] for number in range(count)]
        try:
            answers = workers.run_shares(
                shares, lambda share: "".join("01"[_reads(o)] for o in share)
            )
        except CannotFix as why:
            raise Trouble(
                "Could not verify the backup ({reason}). Nothing was changed.", reason=why
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


def _reads(written: tuple[str, str]) -> bool:
    """Whether a copy has the digest it was written with."""
    path, sha256 = written
    try:
        return disk.digest(path) == sha256
    except (CouldNotLook, OSError):
        return False


def _shares(files: Sequence[BackupSource], count: int) -> list[list[list[BackupSource]]]:
    """Split files into shares that take about the same time."""
    shares: list[list[list[BackupSource]]] = [[] for _ in range(count if len(files) > MANY else 1)]
    costs = [0] * len(shares)
    for source in sorted(files, key=lambda source: -source.expect.size):
        least = costs.index(min(costs))
        shares[least].append([source])
        costs[least] += source.expect.size + OVERHEAD
    return shares


class SaveWorker:
    """A worker process that saves groups of files."""

    def __init__(
        self, writer: BackupWriter, groups: Groups = (), worker: Worker | None = None
    ) -> None:
        self._writer = writer
        self._groups = groups
        self._worker = worker
        self._result = ""

    def listen(self) -> None:
        """Pass on the worker's progress messages, if there are any."""
        while self._worker and not self._result and self._worker.has_output:
            self._hear(self._worker)

    def wait_for_results(self) -> list[BackupEntry]:
        """Wait for the worker, and take over its results."""
        while self._worker and not self._result:
            self._hear(self._worker)
        if self._worker is None:
            return self._again()
        told = json.loads(bytes.fromhex(self._result))
        if "errno" in told:
            raise OSError(told["errno"], os.strerror(told["errno"]))
        self._writer.partial.unread |= told["unread"]
        self._writer.partial.fresh |= set(told["fresh"])
        self._writer.earlier.shared |= told["shared"]
        self._writer.earlier.wrong |= set(told["wrong"])
        self._writer.missing += [MissingFile(*missing) for missing in told["missing"]]
        return [*entries_of(told["entries"])]

    def _again(self) -> list[BackupEntry]:
        """Save the files in this process, because the worker died.

        A disk error kills a process that uses a memory map, but is an exception when reading.
        """
        for source in (source for group in self._groups for source in group):
            # The worker may have added the sidecars of a database.
            for suffix in ("", *(SIDECARS if is_database(source.path_str) else ())):
                self._writer.partial.drop(source.name + suffix)
        return [entry for group in self._groups for entry in self._writer.group(group)]

    def _hear(self, other: Worker) -> None:
        try:
            word, text = other.receive()
        except CannotFix:
            self._worker = None
            return
        if word != "said":
            self._result = text
        elif self._writer.partial.progress:
            self._writer.partial.progress(int(text))


@contextmanager
def start_worker(writer: BackupWriter, groups: Groups) -> Iterator[SaveWorker]:
    """Start a worker that saves these groups."""
    if not groups:
        yield SaveWorker(writer)
        return
    with workers.start_worker(
        writer.partial.folder, lambda say: _told(writer, groups, say)
    ) as other:
        yield SaveWorker(writer, groups, other)


def _told(writer: BackupWriter, groups: Groups, say: Callable[[str], None]) -> str:
    """Save the groups in the worker process, and return the results as one line."""
    waiting = 0

    def progress(count: int) -> None:
        nonlocal waiting
        waiting += count
        if waiting >= STEP or not count:
            say(str(waiting))
            waiting = 0

    partial = writer.partial
    partial.progress = progress if partial.progress else None
    partial.unread, partial.fresh, writer.earlier.shared = {}, set(), False
    writer.missing = []
    partial.alone = True
    try:
        entries = [entry for group in groups for entry in writer.group(group)]
    except OSError as error:
        return _line({"errno": error.errno or 0})
    progress(0)
    return _line(
        {
            "entries": [entry._asdict() for entry in entries],
            "unread": partial.unread,
            "fresh": list(partial.fresh),
            "shared": writer.earlier.shared,
            "wrong": list(writer.earlier.wrong),
            "missing": writer.missing,
        }
    )


def _line(told: dict[str, object]) -> str:
    """Encode results as one word, because the pipe does not preserve spaces."""
    return json.dumps(told, default=dict).encode("ascii").hex()


def why_unreadable(group: Sequence[BackupSource], error: CouldNotLook | OSError) -> str | None:
    """Why a file, or one that belongs to it, cannot be read; None if reading is not the problem.

    A copy error does not say which side failed, so each file is read again alone.
    """
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return os_error_reason(error)
    for source in group:
        if why := _why(source.path_str):
            return why
    cause = error.__cause__ if isinstance(error, CouldNotLook) else None
    return os_error_reason(cause) if isinstance(cause, OSError) else None


def _why(place: str) -> str | None:
    try:
        with as_owner_of_str_path(place) as here:
            fd = open_regular(here, follow=False)
        try:
            while os.read(fd, MEGABYTE):
                pass
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except CouldNotLook as why:
        return reason_without_name(why)
    except OSError as error:
        return os_error_reason(error)
    return None
