"""The files of a database: their paths, their state, and one consistent image of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hermes_doctor.core.home import SIDECARS
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system.files import (
    Snapshot,
    list_folder,
    open_regular,
    reason,
    size,
    snapshot,
)
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.wal import WriteAheadLog


def resolve_symlink(path: Path) -> Path:
    """Resolve a symlink: repairs keep the link and change the file that it points to."""
    try:
        return path.resolve(strict=True) if path.is_symlink() else path
    except (OSError, RuntimeError):
        raise CannotFix(
            "{path} is a symlink to a missing file. Correct the symlink first.", path=path.name
        ) from None


def sidecars(database: Path) -> list[Path]:
    """The paths of the files that SQLite keeps next to a database, the write-ahead log first."""
    return [database.with_name(database.name + suffix) for suffix in SIDECARS]


TRIES = 8
ASIDE = "-wal.aside-"
"""The suffix that starts after the database name in the name of a log that was set aside."""


class DatabaseFiles(NamedTuple):
    """Snapshots of a database file and its sidecar files, after following symlinks."""

    path: Path
    main: Snapshot
    wal: Snapshot
    shm: Snapshot
    journal: Snapshot

    @property
    def sidecars(self) -> dict[str, Snapshot]:
        """The sidecar files that exist, by suffix."""
        named = {"-wal": self.wal, "-shm": self.shm, "-journal": self.journal}
        return {suffix: state for suffix, state in named.items() if state.kind != "absent"}

    def beside(self, suffix: str) -> Path:
        """The path of one sidecar file."""
        return self.path.with_name(self.path.name + suffix)


def database_files(path: Path) -> DatabaseFiles:
    """Take snapshots of a database's files; a symlink is resolved first, as SQLite does."""
    try:
        real = path.resolve(strict=True)
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:
        raise CouldNotLook("{path}: a symlink to a missing file", path=path.name) from error
    if not real.name:
        raise CouldNotLook("{path}: a symlink to the root folder", path=path.name)
    beside = [snapshot(real.with_name(real.name + s)) for s in ("-wal", "-shm", "-journal")]
    return DatabaseFiles(real, snapshot(real), *beside)


def set_aside_logs(path: Path) -> list[Path]:
    """The write-ahead logs of a database that were set aside next to it, oldest first."""
    try:
        names = list_folder(path.parent)
    except (CouldNotLook, FileNotFoundError):
        return []
    logs = [path.with_name(name) for name in sorted(names) if name.startswith(path.name + ASIDE)]
    return [log for log in logs if snapshot(log).kind == "file"]


class OpenFiles:
    """The open descriptors of one database's files."""

    def __init__(self, main: int, log: int | None, index: int | None) -> None:
        self.main = main
        self.log = log
        self.index = index

    def shm_header(self) -> wal.ShmHeader | None:
        """Read the header of the -shm file as it is now."""
        return wal.ShmHeader.parse(os.pread(self.index, 136, 0)) if self.index is not None else None

    def mark(self) -> tuple[object, ...]:
        """A mark that changes when a process writes without a write-ahead log."""
        marks: list[object] = []
        for fd in (self.main, self.log):
            st = os.fstat(fd) if fd is not None else None
            marks.append(st and (st.st_size, st.st_mtime_ns))
        return (*marks, self.log is not None and os.pread(self.log, wal.LOG_HEAD, 0))

    def read_log(
        self,
        *,
        live: bool = True,
        committed: int | None = None,
        seconds: float | None = None,
        max_frames: int | None = None,
    ) -> WriteAheadLog:
        """Read the write-ahead log as the next reader sees it.

        The number of valid frames comes from the -shm file if a process uses the database (a
        leftover -shm file proves nothing), from `committed` if SQLite was asked, else from the
        checksums.
        """
        if self.log is None:
            return wal.EMPTY
        living = self.shm_header() if live else None
        if living is not None:
            log = wal.read(self.log, committed=living.committed, live=True, max_frames=max_frames)
            if log.salts == living.salts and log.committed >= living.committed:
                return log
        return wal.read(self.log, committed=committed, seconds=seconds, max_frames=max_frames)


@contextmanager
def open_files(path: Path) -> Iterator[OpenFiles]:
    """Open a database, its write-ahead log and its -shm file; nothing is locked or created.

    A log or -shm file that is not a regular file, or that we may not read, counts as missing.
    """
    with ExitStack() as stack:
        descriptors: list[int | None] = []
        for suffix in ("", "-wal", "-shm"):
            fd = None
            try:
                fd = open_regular(path.with_name(path.name + suffix))
                stack.callback(os.close, fd)
            except (FileNotFoundError, CouldNotLook):
                if not suffix:
                    raise
            descriptors.append(fd)
        main, log, index = descriptors
        assert main is not None
        try:
            yield OpenFiles(main, log, index)
        except OSError as error:
            raise CouldNotLook(reason(error, path)) from error


def read_image(files: OpenFiles, *, max_bytes: int, log: WriteAheadLog | None = None) -> bytes:
    """Read the whole database as a reader would see it, ready to be opened in memory.

    A writer may continue meanwhile: the log is read first, and if it is not restarted and no
    checkpoint goes past what was read, log and file belong together. Pass `log` if no process
    writes it; pass the empty log to ignore it. More than `max_bytes` are refused, whatever the
    files claim.
    """
    for _ in range(TRIES):
        before = files.mark()
        read = files.read_log() if log is None else log
        living = files.shm_header() if log is None else None
        length = os.fstat(files.main).st_size
        if length > max_bytes:
            raise CouldNotLook("it is larger than {size}", size=size(max_bytes))
        data = bytearray(os.pread(files.main, length, 0))
        if read.pages and files.log is not None:
            data = _overlaid(files.log, read, data, max_bytes)
        after = files.shm_header()
        if living and after and read.salts == living.salts:
            whole = after.salts == living.salts and after.backfill <= read.committed
        else:
            whole = files.mark() == before
        if whole:
            with suppress(IndexError):  # a database in memory has no log
                data[18] = data[19] = 1
            return bytes(data)
        time.sleep(0.005)
    raise CouldNotLook("another program is writing it now")


def _overlaid(fd: int, log: WriteAheadLog, data: bytearray, max_bytes: int) -> bytearray:
    page = log.page_size
    length = max(len(data) // page, *log.pages) * page
    if length > max_bytes:
        raise CouldNotLook("it is larger than {size}", size=size(max_bytes))
    data.extend(bytes(max(0, length - len(data))))
    for number, at in log.pages.items():
        data[(number - 1) * page : number * page] = os.pread(fd, page, at)
    return data[: log.db_pages * page]
