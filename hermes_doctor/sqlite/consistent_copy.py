"""One moment of a database in use, written as one file: its pages, those of its log laid over.

Somebody must hold a read transaction meanwhile. Under it

- nothing later than what it reads comes into the file, so that the file stands still where all
  of the log is in it already;
- where not all of it is, the log is not begun anew: what was committed stays where it lies.

So file and log can be read side by side and written in one go, each stretch final when the next
one begins, though the writer goes on.
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
from hermes_doctor.sqlite.snapshot import Book
from hermes_doctor.system import disk
from hermes_doctor.system.digests import PIECE
from hermes_doctor.system.files import Snapshot, open_regular
from hermes_doctor.system.privileges import acting_for

STRETCH = 16 * 1024 * 1024
TRIES = 200
_KEEPS_LOG, _KEEPS_NONE = b"\2\2", b"\1\1"


def written(source: Path, target: int, held: Snapshot) -> Iterator[int]:
    """Write it into an empty file; again and again, how many bytes will not change any more.

    `held` is what the source was before somebody began to hold it.
    """
    with _opened(source, held) as book:
        log = needed(book)
        before = _head(book)
        length, size = os.fstat(book.main).st_size, size_of(book, log)
        first = os.pread(book.main, 20, 0)
        yield 0
        for start in range(0, size, STRETCH):
            end = min(start + STRETCH, size)
            disk.transfer(book.main, target, start, min(end, length) - start)
            for at, page in _pages(book, log, start, end):
                disk.place(target, page, at)
                first = first if at else page
            if not start and first[18:20] == _KEEPS_LOG:
                disk.place(target, _KEEPS_NONE, 18)
            yield end
        if os.fstat(target).st_size != size:
            raise CannotFix("it became shorter")
        if log.pages and _head(book) != before:
            raise CannotFix("its log was begun anew")


class Known(Protocol):
    """Something that a moment may be the same as, so that it need not be read."""

    def holds(self, fd: int, start: int, end: int) -> bool:
        """Whether a stretch of a file stands there in it, too."""

    def has(self, data: bytes, at: int) -> bool:
        """Whether these bytes stand there in it."""


def read(source: Path, held: Snapshot, known: Known | None = None) -> Iterator[bytes | range]:
    """The same moment piece by piece, all of one length but the last; nothing is written.

    Of a piece that is `known` it is given where it lies.
    """
    with _opened(source, held) as book:
        log = needed(book)
        before = _head(book)
        length, size = os.fstat(book.main).st_size, size_of(book, log)
        for start in range(0, size, PIECE):
            end = min(start + PIECE, size)
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
            raise CannotFix("its log was begun anew")


def _is(known: Known, fd: int, start: int, end: int, laid: list[tuple[int, bytes]]) -> bool:
    """Whether a piece, pages laid over it, is known."""
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
def _opened(source: Path, held: Snapshot) -> Iterator[Book]:
    """The files of a database; that which is held, not one that was put in its place since."""
    with ExitStack() as stack:
        found: list[int | None] = []
        for suffix in ("", "-wal", "-shm"):
            with acting_for(source) as here:
                try:
                    fd = open_regular(here.with_name(here.name + suffix), follow=False)
                except FileNotFoundError:
                    if not suffix:
                        raise CannotFix("it is gone") from None
                    found.append(None)
                    continue
            stack.callback(os.close, fd)
            found.append(fd)
        main, log, index = found
        assert main is not None
        now = Snapshot.of(os.fstat(main))
        if (now.dev, now.ino) != (held.dev, held.ino):
            raise CannotFix("it was replaced")
        yield Book(main, log, index)


def needed(book: Book) -> wal.Log:
    """What of the log is not in the file; the -shm file tells, since a reader keeps it alive."""
    if book.log is None or os.fstat(book.log).st_size < wal.HEAD:
        return wal.EMPTY
    for _ in range(TRIES):
        living = book.living()
        if living is not None and living.done >= living.committed:
            return wal.EMPTY
        if living is not None:
            log = wal.read(book.log, until=living.committed, living=True)
            fits = log.salts == living.salts and log.committed == living.committed
            if fits and (now := book.living()) and now.salts == living.salts:
                return log
        time.sleep(0.005)  # somebody is writing just there
    raise CannotFix("what is said of its log is not so")


def _head(book: Book) -> bytes:
    return os.pread(book.log, wal.HEAD, 0) if book.log is not None else b""


def size_of(book: Book, log: wal.Log) -> int:
    """How long it is; never longer than its file and its log together, whatever they claim."""
    held = os.fstat(book.main).st_size
    if not log.pages:
        return held
    size = log.db_pages * log.page_size
    if size > held + log.size:
        raise CannotFix("its log claims more than is there")
    return size


def _pages(book: Book, log: wal.Log, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The log's pages of one stretch: where each belongs, and its bytes."""
    if book.log is None or not log.pages:
        return
    size = log.page_size
    for number in range(start // size + 1, end // size + 1):
        if number in log.pages:
            data = os.pread(book.log, size, log.pages[number])
            if len(data) < size:
                raise CannotFix("its log became shorter")
            yield (number - 1) * size, data
