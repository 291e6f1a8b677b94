"""Choose whether a damaged file is read alone, with its write-ahead log or with its journal.

A log or journal that belongs to the file makes its b-trees consistent; one of another file, or of
an older version of this one, breaks them.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hermes_doctor.core.system.files import Snapshot
from hermes_doctor.sqlite import log_ancestry, wal
from hermes_doctor.sqlite.header import Header
from hermes_doctor.sqlite.log_ancestry import PageComparison
from hermes_doctor.sqlite.pages import DatabasePages
from hermes_doctor.sqlite.salvage import layouts, trees
from hermes_doctor.sqlite.salvage.image import DamagedFile
from hermes_doctor.sqlite.salvage.layouts import SalvagedCatalog
from hermes_doctor.sqlite.salvage.survey import Survey
from hermes_doctor.sqlite.schema import Catalog

View = tuple[Survey, SalvagedCatalog]
SECONDS = 10.0
"""Seconds for comparing the pages of a log with those of its file."""


def choose_view(image: DamagedFile, progress: Callable[[int], None]) -> tuple[View, str]:
    """The most consistent view of the file, and a sentence if it is not what SQLite reads."""
    view = _look(image, progress)
    if image.undo.places and not image.log.places:
        return _with_journal(image, view, progress)
    if not image.log.places or image.log.damaged or not count_row_breaks(view):
        return view, ""
    if not image.size:  # the file is empty or missing: there is only its log
        return view, ""
    foreign = not _own_log(image) or _contradicts(image, view)
    image.use_file()
    alone = _look(image, progress)
    if not foreign and not count_breaks(alone):
        return alone, (
            "The file is intact, but not together with its write-ahead log. No row of the log is "
            "in the new database; the log is in the vault."
        )
    if foreign and not count_row_breaks(alone):
        return alone, (
            "The write-ahead log does not belong to this file, which is intact without it. No row "
            "of the log is in the new database; the log is in the vault."
        )
    image.use_log()
    return view, ""


def _with_journal(
    image: DamagedFile, alone: View, progress: Callable[[int], None]
) -> tuple[View, str]:
    """Undo an interrupted transaction, if the journal belongs to this file."""
    ignored = "A rollback journal from another time is next to the file; it was not used."
    begun, now = image.counter_before_journal(), image.counter()
    if image.size and begun is not None and now - begun not in (0, 1):
        return alone, ignored
    image.use_journal()
    undone = _look(image, progress)
    worse, better = count_breaks(undone), count_breaks(alone)
    if worse < better or (worse == better and not image.in_wal_mode):
        return undone, "A transaction that a crash interrupted was undone with its journal."
    image.use_file()
    return alone, ignored


def _look(image: DamagedFile, progress: Callable[[int], None]) -> View:
    survey = Survey(image, progress)
    return survey, layouts.read_catalog(survey)


def _own_log(image: DamagedFile) -> bool:
    """Whether the log continues this file; then misfits between them are damage."""
    assert image.wal is not None
    header = Header(os.pread(image.fd, 128, 0), Snapshot.of(os.fstat(image.fd)))
    log = wal.read(image.wal, seconds=1.0)
    return log_ancestry.of_log(header, image.wal, log).level == log_ancestry.PROVEN


def _contradicts(image: DamagedFile, view: View) -> bool:
    """Whether the log cannot belong to this file, although the counters on page 1 match."""
    claimed = int.from_bytes(os.pread(image.fd, 4, 28), "big")
    added = range(image.file_pages + 1, image.log.pages + 1)
    if claimed == image.file_pages and any(number not in image.log.places for number in added):
        return True
    pages = DatabasePages(
        image.fd, image.over_fd, image.page_size, image.reserved, image.over, image.count
    )
    compared = PageComparison(pages)
    compared.walk(Catalog(tuple(view[1].entries)).trees, SECONDS)
    return compared.foreign


def count_breaks(view: View) -> int:
    """The number of breaks in all b-trees."""
    survey, catalog = view
    roots = [entry.root for entry in catalog.entries if entry.kind == "index" and entry.root]
    return count_row_breaks(view) + sum(not trees.walk_index(survey, root).whole for root in roots)


def count_row_breaks(view: View) -> int:
    """The number of breaks in b-trees with rows; indexes can be rebuilt."""
    survey, catalog = view
    count = len(trees.walk_table(survey, 1).gaps)
    for entry in catalog.entries:
        layout = catalog.layouts.get(entry.name)
        has_rows = entry.kind == "table" and (layout is None or layout.plain)
        if entry.root and has_rows:
            count += len(trees.walk_table(survey, entry.root).gaps)
    return count
