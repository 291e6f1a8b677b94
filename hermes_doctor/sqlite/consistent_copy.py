"""Copy a consistent state of a database in use, merging its write-ahead log into the copy.

Another process must hold a read transaction during the copy. While it does

- no checkpoint writes later pages into the file, so the file does not change if it already
  contains the whole log;
- otherwise the log is not restarted, so committed frames stay where they are.

So file and log can be read together and written in one pass, although the writer continues. Each
part of the copy is final when the next one starts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.snapshot import OpenFiles
from hermes_doctor.system import disk
from hermes_doctor.system.digests import CHUNK
from hermes_doctor.system.files import Snapshot, open_regular
from hermes_doctor.system.privileges import as_owner_of

STRETCH = 16 * 1024 * 1024
TRIES = 200
_KEEPS_LOG, _KEEPS_NONE = b"\2\2", b"\1\1"


def write_copy(source: Path, target: int, expected: Snapshot) -> Iterator[int]:
    """Write the copy into an empty file; yield repeatedly how many of its bytes are final.

    `expected` is the snapshot of the source from before the read transaction started.
    """
    with _opened(source, expected) as book:
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
    with _opened(source, expected) as book:
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
    found = b""
    while start + len(found) < end:
        more = os.pread(fd, end - start - len(found), start + len(found))
        if not more:
            raise CannotFix("it became shorter")
        found += more
    return found


@contextmanager
def _opened(source: Path, expected: Snapshot) -> Iterator[OpenFiles]:
    """Open the files of a database; raise if the main file was replaced since `expected`."""
    with ExitStack() as stack:
        found: list[int | None] = []
        for suffix in ("", "-wal", "-shm"):
            with as_owner_of(source) as here:
                try:
                    fd = open_regular(here.with_name(here.name + suffix), follow=False)
                except FileNotFoundError:
                    if not suffix:
                        raise CannotFix("it was removed") from None
                    found.append(None)
                    continue
            stack.callback(os.close, fd)
            found.append(fd)
        main, log, index = found
        assert main is not None
        now = Snapshot.of(os.fstat(main))
        if (now.dev, now.ino) != (expected.dev, expected.ino):
            raise CannotFix("it was replaced")
        yield OpenFiles(main, log, index)


def log_not_in_file(files: OpenFiles) -> wal.WriteAheadLog:
    """The part of the write-ahead log that is not yet in the file.

    The -shm file tells, because the reader keeps it valid.
    """
    if files.log is None or os.fstat(files.log).st_size < wal.HEAD:
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
    return os.pread(files.log, wal.HEAD, 0) if files.log is not None else b""


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
