"""Write one file with the content of a database and of its write-ahead log or journal.

SQLite reads a database together with its sidecar files: it plays back a hot rollback journal, then
applies the committed pages of a write-ahead log. `write` does the same page by page without
interpreting them, so it also works for a damaged database. Applying the same log to the joined
file again changes nothing, so the file is a safe replacement while a log is moved.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import ABSENT, open_regular, snapshot
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.header import MAGIC, page_size_of


class Parts(NamedTuple):
    """The paths of one database's files; the log and the journal may be missing."""

    main: Path
    log: Path
    journal: Path


def is_needed(parts: Parts) -> bool:
    """Whether SQLite would read more than the main file contains."""
    with _opened(parts) as (main, log, journal):
        if main is None or not os.fstat(main).st_size:  # SQLite deletes the log of an empty one
            return False
        if _is_hot(journal):
            return True
        frames = wal.read(log) if log is not None else wal.EMPTY
        held = os.fstat(main).st_size
        if os.pread(main, len(MAGIC), 0) != MAGIC and _claims_too_much(frames, held):
            return False  # it is not a database, and its log is only a part of one
        return bool(frames.pages)


def write_joined(parts: Parts, target: int) -> None:
    """Write the joined content into an empty file."""
    with _opened(parts) as (main, log, journal):
        if main is None:
            raise CannotFix("{main} is missing", main=parts.main.name)
        held = os.fstat(main).st_size
        disk.copy_range(main, target, 0, held)
        if _is_hot(journal):
            assert journal is not None
            _roll_back(main, journal, target)
        if log is not None:
            _lay_over(log, target, held)


def _roll_back(main: int, journal: int, target: int) -> None:
    """Play a rollback journal back into the copy, as SQLite would."""
    undo = wal.read_journal(journal, page_size_of(os.pread(main, 18, 0)) or 4096)
    disk.truncate(target, undo.pages * undo.page_size)
    for number in undo.places:
        page = undo.page(journal, number)
        if page is not None:
            disk.write_at(target, page, (number - 1) * undo.page_size)


def _lay_over(fd: int, target: int, held: int) -> None:
    """Apply the committed pages of a write-ahead log to the copy."""
    log = wal.read(fd)
    if not log.pages:
        return
    size = log.db_pages * log.page_size
    if _claims_too_much(log, max(held, os.fstat(target).st_size)):
        raise CannotFix("its write-ahead log is incomplete")
    for number, at in sorted(log.pages.items()):
        page = os.pread(fd, log.page_size, at)
        if len(page) < log.page_size:
            raise CannotFix("its write-ahead log became shorter")
        disk.write_at(target, page, (number - 1) * log.page_size)
    disk.truncate(target, size)


def _claims_too_much(log: wal.WriteAheadLog, held: int) -> bool:
    """Whether the database should be larger than the file and its log together."""
    return log.db_pages * log.page_size > held + log.size


def _is_hot(fd: int | None) -> bool:
    """Whether SQLite would play a journal back.

    The journal of a transaction over several databases is hot only while their super-journal
    exists.
    """
    if fd is None or not wal.is_hot(fd):
        return False
    length = os.fstat(fd).st_size
    if not wal.read_journal(fd, 4096).shared:
        return True
    (name,) = struct.unpack(">I", os.pread(fd, 4, length - 16))
    return os.path.exists(os.pread(fd, name, length - 16 - name).rstrip(b"\0"))


@contextmanager
def _opened(parts: Parts) -> Iterator[tuple[int | None, int | None, int | None]]:
    """Descriptors of the files that exist."""
    with ExitStack() as stack:
        descriptors: list[int | None] = []
        for path in parts:
            if snapshot(path) == ABSENT:
                descriptors.append(None)
                continue
            with as_owner_of(path) as here:
                fd = open_regular(here, follow=False)
            stack.callback(os.close, fd)
            descriptors.append(fd)
        main, log, journal = descriptors
        yield main, log, journal
