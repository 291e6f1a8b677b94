"""The result of examining one database, shared by several checks."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE
from hermes_doctor.sqlite.examine.first_page import FirstPageFault
from hermes_doctor.sqlite.examine.fulltext_check import FulltextFlaw, Rebuild, Unchecked
from hermes_doctor.sqlite.files import DatabaseFiles
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.pages import DatabasePages
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.schema import Catalog
from hermes_doctor.sqlite.wal import EMPTY, WriteAheadLog

if TYPE_CHECKING:
    from hermes_doctor.sqlite.examine.damage import Damage

SMALL_BYTES = 4 * MEGABYTE
"""A database up to this size is examined as a whole, in memory."""
SMALL_BYTES_DEEP = 64 * MEGABYTE
QUICK_CHECK_SECONDS = 0.05
"""Seconds for SQLite's own check of one database in a quick examination, enough for about 60 MB."""
QUERY_SECONDS = 0.01
"""Seconds for one query in a quick examination."""
SMALL_QUERY_SECONDS = 0.5
"""Seconds for one query to a small database; it needs that long only on an overloaded machine."""
ATTRIBUTION_SECONDS = 1.0
"""Seconds to find out which tables are damaged, once damage was found."""
FILE_ALONE_SECONDS = 4.0
"""Seconds to check a file without its write-ahead log when it is damaged together with it."""
RETRY_SECONDS = 2.0
"""Seconds for repeated examinations of a database that is written whenever it looks damaged."""
LEAST_ATTEMPTS = 4
"""The minimum number of these examinations, however long they take."""
WatchProgress = Callable[[Callable[[], float]], None]
"""Receives, once, a function that returns the progress of the examination."""


class JournalVerdict(NamedTuple):
    """The verdict on the journal of an interrupted transaction, with the evidence for it.

    The kind is own (play it back), foreign (set it aside), damaged (save the rows of both) or
    unclear (a person has to decide).
    """

    kind: str
    evidence: tuple[str, ...]
    records: int = 0


MOST_TRUNKS = 64


class Freelist(NamedTuple):
    """The result of checking the start of the freelist."""

    pages: int
    """The number of free pages in the header of the database."""
    fault: str | None = None


def read_freelist(pages: DatabasePages) -> Freelist:
    """Follow at most MOST_TRUNKS pages of the list; a longer list is judged by its start."""
    head = pages.read(1)
    trunk, count = struct.unpack_from(">II", head, 32)
    if bool(trunk) != bool(count):
        return Freelist(count, "its header and its length do not agree")
    if count >= pages.count:
        return Freelist(count, f"it claims {count} free pages of {pages.count}")
    seen: set[int] = set()
    counted = 0
    while trunk and len(seen) < MOST_TRUNKS:
        if trunk in seen or not 2 <= trunk <= pages.count:
            return Freelist(count, f"it leads to page {trunk} of {pages.count}")
        seen.add(trunk)
        try:
            page = pages.read(trunk)
        except CouldNotLook:
            return Freelist(count, f"it leads to page {trunk}, which cannot be read")
        following, leaves = struct.unpack_from(">II", page)
        if leaves > pages.usable // 4 - 2:
            return Freelist(count, f"page {trunk} cannot be a part of it")
        numbers = struct.unpack_from(f">{leaves}I", page, 8)
        if any(not 2 <= number <= pages.count for number in numbers):
            return Freelist(count, f"page {trunk} names pages that do not exist")
        counted += 1 + leaves
        trunk = following
    if counted > count or (not trunk and counted != count):
        return Freelist(count, f"it contains {counted} pages but claims {count}")
    return Freelist(count)


class Condition(NamedTuple):
    """What one examination of a database found."""

    files: DatabaseFiles
    header: Header
    holders: tuple[int, ...] = ()
    """The processes that have it open."""
    fault: FirstPageFault | None = None
    """Its first page is damaged; nothing else was examined."""
    journal: JournalVerdict | None = None
    """It has the journal of an unfinished transaction; nothing else was examined."""
    log: WriteAheadLog = EMPTY
    truncated: tuple[int, int] | None = None
    """Actual and expected number of pages; nothing else was examined."""
    catalog: Catalog | None = None
    free: Freelist | None = None
    damage: Damage | None = None
    flaws: tuple[FulltextFlaw, ...] = ()
    unjudged: tuple[Unchecked, ...] = ()
    rebuild: Rebuild | None = None
    """Hermes has not finished rebuilding its search index."""
    benign: frozenset[str] = frozenset()
    """Full-text tables that differ only because another SQLite version filled them."""
    stale_log: str = ""
    """Why the write-ahead log has to be set aside: the file is sound only without it."""
    foreign_log: bool = False
    """Whether it is proven that this write-ahead log belongs to another database."""
    partly: str | None = None
    """What was not examined; a quick examination of a large file omits most of it."""
    doubt: str | None = None
    """Why SQLite could not be queried."""
    reader: Reader | None = None

    @property
    def wrong(self) -> bool:
        """Whether anything was found that could also be a writer in the middle of its work."""
        log = self.log.lost_commits or self.log.head == "damaged" or bool(self.stale_log)
        return bool(
            self.fault or self.journal or self.truncated or self.damage or log or self.flaws
        )

    def is_small(self, deep: bool) -> bool:
        """Whether it can be examined as a whole, in memory."""
        most = SMALL_BYTES_DEEP if deep else SMALL_BYTES
        return self.files.main.size + self.files.wal.size <= most

    def patience(self, deep: bool, factor: float = 2) -> float | None:
        """Seconds for one query about its rows; None for no limit."""
        if deep:
            return None
        return SMALL_QUERY_SECONDS if self.is_small(deep) else factor * QUERY_SECONDS

    @property
    def readable(self) -> bool:
        """Whether its rows can be queried."""
        unreadable = bool(self.stale_log) or (self.damage is not None and self.damage.schema)
        return self.reader is not None and not unreadable

    @property
    def page_size(self) -> int:
        """Bytes per page."""
        return self.header.page_size or self.log.page_size


def wrong_encoding(condition: Condition) -> FirstPageFault | None:
    """The fault if the header says UTF-16 but the table names are readable as UTF-8."""
    assert condition.catalog is not None
    if condition.log.pages or condition.header.head[56:60] not in (b"\0\0\0\2", b"\0\0\0\3"):
        return None
    if not any(entry.kind in ("table", "index") for entry in condition.catalog.entries):
        return None
    return FirstPageFault("fields", "its header has a wrong encoding", {"encoding": 1})


def wrong_count(
    condition: Condition, damage: Damage | None, pages: DatabasePages
) -> FirstPageFault | None:
    """The fault if the header claims too few pages and the damage is in the pages beyond."""
    there, uneven = divmod(condition.header.snapshot.size, pages.page_size)
    if not damage or uneven or condition.log.pages or there <= condition.header.page_count:
        return None
    if not any(condition.header.page_count < page <= there for page in damage.pages):
        return None
    what = f"its header claims {condition.header.page_count} pages, and there are {there}"
    return FirstPageFault("fields", what, {"page_count": there})


def truncation(condition: Condition, pages: DatabasePages) -> tuple[int, int] | None:
    """Actual and expected page count if pages are neither in the file nor in the log."""
    there = condition.header.snapshot.size // pages.page_size
    first = pages.read(1)
    trusted = first[24:28] == first[92:96]
    claimed = condition.log.db_pages or (int.from_bytes(first[28:32], "big") if trusted else 0)
    if claimed <= there:
        uneven = condition.header.snapshot.size % pages.page_size
        return (there, there + 1) if uneven and not condition.log.pages else None
    if not missing_pages(pages, there, claimed):
        return None
    return there, claimed


def missing_pages(pages: DatabasePages, actual: int, claimed: int) -> int:
    """How many pages behind the end of the file are not in the write-ahead log."""
    # A forged log may claim any number of pages, so they are not counted one by one.
    unwritten = 0x40000000 // pages.page_size + 1  # SQLite's lock bytes; never written
    not_missing = {*pages.frames, unwritten}
    return claimed - actual - sum(actual < number <= claimed for number in not_missing)
