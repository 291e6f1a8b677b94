"""One examination of one database: everything that several checks want to know about it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import first_page, header as headers
from hermes_doctor.sqlite.catalog import Catalog
from hermes_doctor.sqlite.coverage import Flaw, Rebuild, Unjudged
from hermes_doctor.sqlite.freelist import Freelist
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.snapshot import Book, Files, files, opened
from hermes_doctor.sqlite.wal import EMPTY, Log
from hermes_doctor.system import time_limits
from hermes_doctor.system.files import MEGABYTE, Snapshot

if TYPE_CHECKING:
    from hermes_doctor.sqlite.hot_journal import Cutoff
    from hermes_doctor.sqlite.verdict import Damage

SMALL = 4 * MEGABYTE
"""Up to here a database is looked at in memory, whole."""
SMALL_DEEP = 64 * MEGABYTE
QUICK = 0.03
"""Seconds for SQLite's own check of one database in a quick look."""
ONE = 0.01
"""Seconds for one question in a quick look."""
WHOLE = 0.5
"""The same where the database is small: it takes no time, unless the machine has none to give."""
ATTRIBUTION = 1.0
"""Seconds to find out which tables damage hits, once there is damage."""
ALONE = 4.0
"""Seconds to find out whether a file is sound without its log, where with it it is not."""
PATIENCE = 2.0
"""Seconds for looking again at a database that is moved each time something seems wrong with it."""
LOOKS = 4
"""As many at least, however long they take."""
Watch = Callable[[Callable[[], float]], None]
"""Told once how to find out how far a look has come."""


class Condition(NamedTuple):
    """What one look at a database showed."""

    files: Files
    header: Header
    holders: tuple[int, ...] = ()
    """The processes that have it open."""
    fault: first_page.Fault | None = None
    """Its first page is wrong; nothing further was looked at."""
    journal: Cutoff | None = None
    """A transaction that was not finished lies beside it; nothing further was looked at."""
    log: Log = EMPTY
    truncated: tuple[int, int] | None = None
    """Pages there are, and pages there should be; nothing further was looked at."""
    catalog: Catalog | None = None
    free: Freelist | None = None
    damage: Damage | None = None
    flaws: tuple[Flaw, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    rebuild: Rebuild | None = None
    """Hermes has not finished rebuilding its search."""
    benign: frozenset[str] = frozenset()
    """Full-text tables that another release of SQLite filled, which is no damage."""
    stale_log: str = ""
    """Why the log has to be set aside; the file alone is sound, the pair is not."""
    foreign_log: bool = False
    """Whether it is proven that such a log is not the file's own."""
    partly: str | None = None
    """What was left out of the look, as a quick look at a large file leaves out most of it."""
    doubt: str | None = None
    """Why SQLite could not be asked."""
    reader: Reader | None = None

    @property
    def wrong(self) -> bool:
        """Whether anything was seen that a writer in the middle of its work could look like."""
        log = self.log.lost_commits or self.log.head == "damaged" or bool(self.stale_log)
        return bool(
            self.fault or self.journal or self.truncated or self.damage or log or self.flaws
        )

    def patience(self, deep: bool) -> float | None:
        """Seconds for one question about its rows."""
        if deep:
            return None
        small = self.files.main.size + self.files.wal.size <= SMALL
        return WHOLE if small else 2 * ONE

    @property
    def readable(self) -> bool:
        """Whether questions about its rows make sense."""
        unreadable = bool(self.stale_log) or (self.damage is not None and self.damage.schema)
        return self.reader is not None and not unreadable

    @property
    def page_size(self) -> int:
        """Bytes a page."""
        return self.header.page_size or self.log.page_size


def examine(
    path: Path,
    *,
    holders: Callable[[], Sequence[int]],
    deep: bool,
    seconds: float = QUICK,
    watch: Watch | None = None,
) -> Condition:
    """Look at a database; what looks wrong is looked at again if anybody has touched it since.

    `holders` is asked anew for each look: a process may come and go at any moment. `watch` is
    given a function that tells how far a long look has come, from 0 to 1.
    """
    clock = time_limits.Stopwatch()
    again = 0
    while again < LOOKS or clock.read() < PATIENCE:
        using = tuple(holders())
        before = files(path)
        try:
            found = _once(path, using, deep=deep, seconds=seconds, watch=watch)
        except CouldNotLook:
            if _unchanged(before):
                raise
        else:
            settled = again and using and not found.doubt
            if not (found.wrong or found.doubt) or _unchanged(before) or settled:
                return found
            if found.reader is not None:
                found.reader.close()
        again += 1
        time.sleep(0.01 * again)
    raise CouldNotLook(f"{path.name}: is being written just now")


def _unchanged(before: Files) -> bool:
    """Whether the files are still those that were looked at."""
    now = files(before.path)
    return (now.main, now.wal, now.journal) == (before.main, before.wal, before.journal)


def _once(
    path: Path, holders: tuple[int, ...], *, deep: bool, seconds: float, watch: Watch | None
) -> Condition:
    beside = files(path)
    if beside.main.kind != "file":
        raise CouldNotLook(f"{path.name}: is not a regular file")
    with opened(beside.path) as book:
        header = headers.Header(os.pread(book.main, 128, 0), Snapshot.of(os.fstat(book.main)))
        found = Condition(beside, header, holders)
        if header.empty:
            return found._replace(log=book.read_log(most=256))
        if beside.journal.kind == "file" and (cut := _cut_off(book, found, deep=deep)):
            return found._replace(journal=cut)
        from hermes_doctor.sqlite.examine import Look

        return Look(book, found, deep, seconds, watch).run()


def _cut_off(book: Book, found: Condition, *, deep: bool) -> Cutoff | None:
    """The verdict on a rollback journal that SQLite would play back at the next opening."""
    from hermes_doctor.sqlite import hot_journal
    from hermes_doctor.sqlite.exclusive import in_use

    path = found.files.beside("-journal")
    if not hot_journal.hot(path):
        return None
    if found.holders or in_use(found.files.path):
        raise CouldNotLook(f"{found.files.path.name}: is being written just now")
    most, limit = (SMALL_DEEP, None) if deep else (SMALL, ATTRIBUTION)
    return hot_journal.judge(book, path, found.header, most=most, limit=limit)
