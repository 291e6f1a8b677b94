"""Copy a database while a process writes to it, without blocking the writer."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.core.system import digests, disk
from hermes_doctor.core.system.digests import CHUNK
from hermes_doctor.core.system.files import MEGABYTE, Snapshot, open_regular, snapshot
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.core.system.workers import (
    SendLine,
    Worker,
    lines_from_parent,
    run_as_owner,
    start_worker,
)
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.examine.soundness import (
    address,
    background_check,
    check_structure,
    name_of,
)
from hermes_doctor.sqlite.files import OpenFiles

STRETCH = 16 * 1024 * 1024
TRIES = 200
_KEEPS_LOG, _KEEPS_NONE = b"\2\2", b"\1\1"


def write_copy(source: Path, target: int, expected: Snapshot) -> Iterator[int]:
    """Write the copy into an empty file; yield repeatedly how many of its bytes are final.

    `expected` is the snapshot of the source from before the read transaction started.
    """
    with _open_database(source, expected) as book:
        log = log_not_in_file(book)
        before = _head(book)
        length, size = os.fstat(book.main).st_size, size_of(book, log)
        first = os.pread(book.main, 20, 0)
        yield 0
        for start in range(0, size, STRETCH):
            end = min(start + STRETCH, size)
            disk.copy_range(book.main, target, start, min(end, length) - start)
            for at, page in _pages(book, log, start, end):
                disk.write_at(target, page, at)
                first = first if at else page
            if not start and first[18:20] == _KEEPS_LOG:
                disk.write_at(target, _KEEPS_NONE, 18)
            yield end
        if os.fstat(target).st_size != size:
            raise CannotFix("it became shorter")
        if log.pages and _head(book) != before:
            raise CannotFix("its write-ahead log was started again")


class EarlierCopy(Protocol):
    """An earlier copy to compare with, so that unchanged chunks need not be read."""

    def holds(self, fd: int, start: int, end: int) -> bool:
        """Whether it has the same bytes as the file from `start` to `end`."""

    def has(self, data: bytes, offset: int) -> bool:
        """Whether it has these bytes at this offset."""


def read_chunks(
    source: Path, expected: Snapshot, known: EarlierCopy | None = None
) -> Iterator[bytes | range]:
    """Yield the same state in chunks of equal length (except the last); nothing is written.

    For a chunk that `known` already has, only its byte range is yielded.
    """
    with _open_database(source, expected) as book:
        log = log_not_in_file(book)
        before = _head(book)
        length, size = os.fstat(book.main).st_size, size_of(book, log)
        for start in range(0, size, CHUNK):
            end = min(start + CHUNK, size)
            laid = list(_pages(book, log, start, end))
            if known and start and end <= length and _is(known, book.main, start, end, laid):
                yield range(start, end)
                continue
            plain = _bytes(book.main, start, min(end, length))
            if start and not laid and len(plain) == end - start:
                yield plain
                continue
            piece = bytearray(plain)
            piece.extend(bytes(end - start - len(piece)))
            for at, page in laid:
                piece[at - start : at - start + len(page)] = page
            if not start and piece[18:20] == _KEEPS_LOG:
                piece[18:20] = _KEEPS_NONE
            yield bytes(piece)
        if log.pages and _head(book) != before:
            raise CannotFix("its write-ahead log was started again")


def _is(known: EarlierCopy, fd: int, start: int, end: int, laid: list[tuple[int, bytes]]) -> bool:
    """Whether `known` has this chunk, with the pages of the log applied."""
    if not all(known.has(page, at) for at, page in laid):
        return False
    for at, page in laid:
        if start < at and not known.holds(fd, start, at):
            return False
        start = at + len(page)
    return start >= end or known.holds(fd, start, end)


def _bytes(fd: int, start: int, end: int) -> bytes:
    content = b""
    while start + len(content) < end:
        more = os.pread(fd, end - start - len(content), start + len(content))
        if not more:
            raise CannotFix("it became shorter")
        content += more
    return content


@contextmanager
def _open_database(source: Path, expected: Snapshot) -> Iterator[OpenFiles]:
    """Open the files of a database; raise if the main file was replaced since `expected`."""
    with ExitStack() as stack:
        descriptors: list[int | None] = []
        for suffix in ("", "-wal", "-shm"):
            with as_owner_of(source) as here:
                try:
                    fd = open_regular(here.with_name(here.name + suffix), follow=False)
                except FileNotFoundError:
                    if not suffix:
                        raise CannotFix("it was removed") from None
                    descriptors.append(None)
                    continue
            stack.callback(os.close, fd)
            descriptors.append(fd)
        main, log, index = descriptors
        assert main is not None
        now = Snapshot.of(os.fstat(main))
        if (now.dev, now.ino) != (expected.dev, expected.ino):
            raise CannotFix("it was replaced")
        yield OpenFiles(main, log, index)


def log_not_in_file(files: OpenFiles) -> wal.WriteAheadLog:
    """The part of the write-ahead log that is not yet in the file.

    The -shm file tells, because the reader keeps it valid.
    """
    if files.log is None or os.fstat(files.log).st_size < wal.LOG_HEAD:
        return wal.EMPTY
    for _ in range(TRIES):
        living = files.shm_header()
        if living is not None and living.done >= living.committed:
            return wal.EMPTY
        if living is not None:
            log = wal.read(files.log, committed=living.committed, live=True)
            fits = log.salts == living.salts and log.committed == living.committed
            if fits and (now := files.shm_header()) and now.salts == living.salts:
                return log
        time.sleep(0.005)  # another process is writing it right now
    raise CannotFix("its write-ahead log and its index disagree")


def _head(files: OpenFiles) -> bytes:
    return os.pread(files.log, wal.LOG_HEAD, 0) if files.log is not None else b""


def size_of(files: OpenFiles, log: wal.WriteAheadLog) -> int:
    """The size of the copy; more than file and log together is refused, whatever they claim."""
    held = os.fstat(files.main).st_size
    if not log.pages:
        return held
    size = log.db_pages * log.page_size
    if size > held + log.size:
        raise CannotFix("its write-ahead log is incomplete")
    return size


def _pages(
    files: OpenFiles, log: wal.WriteAheadLog, start: int, end: int
) -> Iterator[tuple[int, bytes]]:
    """The pages of the log in one byte range: the offset and the content of each."""
    if files.log is None or not log.pages:
        return
    size = log.page_size
    for number in range(start // size + 1, end // size + 1):
        if number in log.pages:
            data = os.pread(files.log, size, log.pages[number])
            if len(data) < size:
                raise CannotFix("its write-ahead log became shorter")
            yield (number - 1) * size, data


LONGEST = 3600.0
"""Seconds after which the reader ends its transaction, in case this process hangs."""
OFTEN = 2 * MEGABYTE
"""Bytes after which the reader is checked again."""
READY = 30.0
"""Seconds within which the reader must have started its transaction."""

Progress = Callable[[int], None]


class CopyResult(NamedTuple):
    """The result of copying a database in use."""

    verdict: str
    """SQLite's verdict on the copy."""
    sha256: str
    """The digest of the file as it was read back, computed from its chunks (`digests`)."""
    pieces: str
    """The digests of the chunks."""


def copy(source: Path, target: Path, progress: Progress | None = None) -> CopyResult:
    """Copy a database in use into a new file.

    During the copy a worker holds a read transaction. That never blocks a writer of a database
    in WAL mode. It must be another process: closing the file that we read would drop the locks
    that our own process holds on it. A second worker reads the copy back as it grows and hashes
    it. At the end SQLite examines the copy while it is flushed to the disk.
    """
    held = snapshot(source)
    try:
        with _followed(target) as follower:
            with disk.new_file(target, durable=False) as fd, _held_still(source) as reader:
                final = 0
                for now in write_copy(source, fd, held):
                    follower.send(str(now))
                    if progress and now > final:
                        progress(now - final)
                    final = now
                    if not reader.alive:
                        raise CannotFix("the process that kept it unchanged has stopped")
            follower.close_input()
            follower.receive()  # it has opened the copy, which may be moved now
            places: list[Path] = []
            verdict = run_as_owner(target, lambda place: _finished(place, places))
            sha256, _, pieces = follower.receive()[1].partition(" ")
        moved = places and places[0] != target
        if moved and disk.digest(target, like=sha256) != sha256:
            raise CannotFix("the copy differs from the original")
        return CopyResult(verdict, sha256, pieces)
    except (CannotFix, CouldNotLook) as why:
        disk.remove(target)
        raise Trouble(
            "{source} is in use and could not be copied ({why}). Stop the gateway and try again.",
            source=source.name,
            why=why,
        ) from None


def _finished(place: Path, places: list[Path]) -> str:
    """Flush the copy to the disk while SQLite examines it; return SQLite's verdict."""
    places.append(place)
    with background_check(place) as verdict:
        disk.sync_file(place)
        return verdict()


def _followed(target: Path) -> AbstractContextManager[Worker]:
    """Start a worker that hashes a file while it is written; we send it the final length so far."""

    def follow(say: SendLine) -> str:
        arriving = map(int, lines_from_parent())
        next(arriving, None)  # now the file exists

        def lengths() -> Iterator[int]:
            say("it is open")
            yield from arriving

        pieces = disk.hash_while_written(target, lengths())
        return f"{digests.combine(pieces)} {digests.to_text(pieces)}"

    return start_worker(target, follow)


@contextmanager
def _held_still(source: Path, *, examine: bool = False) -> Iterator[Worker]:
    """Start a worker that keeps a read transaction open and can also examine the database."""

    def hold(say: SendLine) -> str:
        try:
            with contextlib.closing(sqlite3.connect(address(source), uri=True)) as reader:
                reader.isolation_level = None
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
                say("it is held")
                if examine:
                    say(check_structure(reader))
                time.sleep(LONGEST)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise CannotFix(name_of(error)) from None
        return ""

    with start_worker(source, hold) as reader:
        reader.receive(READY)
        yield reader
