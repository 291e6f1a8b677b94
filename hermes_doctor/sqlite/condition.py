"""One examination of one database: everything that several checks want to know about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.sqlite import first_page
from hermes_doctor.sqlite.catalog import Catalog
from hermes_doctor.sqlite.coverage import Flaw, Rebuild, Unjudged
from hermes_doctor.sqlite.freelist import Freelist
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.reader import Reader
from hermes_doctor.sqlite.snapshot import Files
from hermes_doctor.sqlite.wal import EMPTY, Log
from hermes_doctor.system.files import MEGABYTE

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
