"""Decide whether a write-ahead log or a journal can belong to the database next to it.

File times prove nothing: a copy, a long transaction or a restore changes them in any direction.
SQLite's own counters do. Page 1 counts the changes and the pages of a database, and a log or a
journal either has its own version of page 1 or leaves it unchanged.
"""

from __future__ import annotations

import os
import struct

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.sqlite.header import MAGIC, Header
from hermes_doctor.sqlite.rollback_journal import Undo
from hermes_doctor.sqlite.wal import FRAME, HEAD, WriteAheadLog

PROVEN, LIKELY, UNKNOWN, IMPOSSIBLE = "proven", "likely", "unknown", "impossible"


class Ancestry(NamedTuple):
    """How certain it is that two files belong together, and the evidence."""

    level: str
    what: str


class _First(NamedTuple):
    """The counters on page 1 of a database."""

    changes: int
    pages: int
    schema: int
    """How often the schema was changed."""
    keeps_log: bool

    @classmethod
    def of(cls, page: bytes | None) -> _First | None:
        """Parse page 1; None if its counters contradict each other."""
        if page is None or len(page) < 100 or page[:16] != MAGIC or page[24:28] != page[92:96]:
            return None
        changes, pages = struct.unpack_from(">2I", page, 24)
        (schema,) = struct.unpack_from(">I", page, 40)
        return cls(changes, pages, schema, page[18:20] == b"\2\2")


def of_journal(main: int, header: Header, journal: int, undo: Undo, log: WriteAheadLog) -> Ancestry:
    """Whether a journal can be that of the file's last transaction."""
    now = _First.of(header.head)
    if undo.shared:
        return Ancestry(UNKNOWN, "it belongs to a transaction over several databases")
    if header.page_size and undo.page_size != header.page_size:
        return Ancestry(IMPOSSIBLE, "it belongs to a database with pages of another size")
    if now is None:
        return Ancestry(UNKNOWN, "the first page of the database does not show it")
    if now.keeps_log and (log.committed or undo.places.keys() - {1}):
        what = "the database keeps a write-ahead log, which never leaves such a journal"
        return Ancestry(IMPOSSIBLE, what)
    if 1 in undo.places:
        return _counted(now, _First.of(undo.page(journal, 1)), undo)
    begun = now.changes <= 1 if not undo.pages else now.pages == undo.pages
    if not begun:
        what = f"it belongs to a database of {undo.pages} pages, and this one had another number"
        return Ancestry(IMPOSSIBLE, what)
    if undo.pages * undo.page_size == header.snapshot.size and _equal(main, journal, undo):
        return Ancestry(PROVEN, "all its pages are the same in the database")
    return Ancestry(LIKELY, f"it began with the {undo.pages} pages that the database had")


def _counted(now: _First, then: _First | None, undo: Undo) -> Ancestry:
    if then is None or then.pages != undo.pages:
        return Ancestry(UNKNOWN, "the first page in it contradicts its header")
    since = (now.changes - then.changes) & 0xFFFFFFFF
    if since <= 1 and now.schema < then.schema:
        what = f"it began at schema {then.schema:,}, and the database is at {now.schema:,}"
        return Ancestry(IMPOSSIBLE, what)
    if since <= 1:  # a transaction increments the counter as its last action
        return Ancestry(PROVEN, f"it began at change {then.changes:,} of the database, its last")
    what = f"it began at change {then.changes:,}, and the database is at {now.changes:,}"
    return Ancestry(IMPOSSIBLE, what)


def _equal(main: int, journal: int, undo: Undo) -> bool:
    size = undo.page_size
    return all(
        undo.page(journal, number) == os.pread(main, size, (number - 1) * size)
        for number in undo.places
    )


def of_log(header: Header, log_fd: int, log: WriteAheadLog) -> Ancestry:
    """Whether a write-ahead log can have started from this file, or a checkpointed state of it.

    The first version of page 1 in a log has a change counter one higher than the file that the log
    started from (or equal, if the same connection made the previous change), and the counter never
    decreases. If page 1 is not in the log, the database keeps its size.
    """
    now = _First.of(header.head)
    if log.page_size and header.page_size and log.page_size != header.page_size:
        return Ancestry(IMPOSSIBLE, "it belongs to a database with pages of another size")
    if now is None or not log.committed:
        return Ancestry(UNKNOWN, "the first page of the database does not show it")
    if 1 not in log.pages:
        if now.pages == log.db_pages:
            return Ancestry(LIKELY, f"it leaves the database at its {now.pages} pages")
        what = f"it belongs to a database of {log.db_pages} pages, and this one has {now.pages}"
        return Ancestry(IMPOSSIBLE, what)
    first, last = (_First.of(_page(log_fd, log, at)) for at in (_begin(log_fd, log), log.pages[1]))
    if first is None or last is None:
        return Ancestry(UNKNOWN, "the first page in it contradicts itself")
    if first.changes - 1 <= now.changes <= last.changes:
        return Ancestry(PROVEN, f"it continues from change {now.changes:,} of the database")
    span = f"changes {first.changes:,} to {last.changes:,}"
    return Ancestry(IMPOSSIBLE, f"it holds {span}, and the database is at {now.changes:,}")


def _begin(fd: int, log: WriteAheadLog) -> int:
    """The offset of the first version of page 1 in a log."""
    step = FRAME + log.page_size
    for at in range(HEAD, HEAD + log.committed * step, step):
        if os.pread(fd, 4, at) == b"\0\0\0\1":
            return at + FRAME
    return log.pages[1]


def _page(fd: int, log: WriteAheadLog, at: int) -> bytes:
    return os.pread(fd, log.page_size, at)
