"""Which of a file, its log and its journal to believe.

A log or a journal that belongs to the file makes it fit together; one of another file, or of an
earlier life of this one, tears it apart.
"""

from __future__ import annotations

from collections.abc import Callable

from hermes_doctor.sqlite.salvage import catalog as catalogs, trees
from hermes_doctor.sqlite.salvage.catalog import Catalog
from hermes_doctor.sqlite.salvage.image import Image
from hermes_doctor.sqlite.salvage.survey import Survey

View = tuple[Survey, Catalog]


def choose(image: Image, progress: Callable[[int], None]) -> tuple[View, str]:
    """The view of the file that fits together best, and a sentence when it is not SQLite's."""
    view = _look(image, progress)
    if image.rollback.places and not image.log.places:
        return _with_journal(image, view, progress)
    if not image.log.places or image.log.damaged or not misfits(view):
        return view, ""
    image.use_file()
    alone = _look(image, progress)
    if not misfits(alone):
        return alone, "The write-ahead log is not this file's, which is sound without it."
    image.use_log()
    return view, ""


def _with_journal(image: Image, alone: View, progress: Callable[[int], None]) -> tuple[View, str]:
    """Undo the transaction that a crash left half-done, if that is what the journal is of."""
    ignored = "A rollback journal of another time lies beside the file; it was not followed."
    begun, now = image.undone_counter(), image.counter()
    if begun is not None and now - begun not in (0, 1):
        return alone, ignored
    image.use_journal()
    undone = _look(image, progress)
    worse, better = misfits(undone), misfits(alone)
    if worse < better or (worse == better and not image.in_wal_mode):
        return undone, "A transaction that a crash had cut off was taken back by its journal."
    image.use_file()
    return alone, ignored


def _look(image: Image, progress: Callable[[int], None]) -> View:
    survey = Survey(image, progress)
    return survey, catalogs.read(survey)


def misfits(view: View) -> int:
    """Places at which trees do not hold together."""
    survey, catalog = view
    count = len(trees.table(survey, 1).gaps)
    for entry in catalog.entries:
        if not entry.root:
            continue
        if entry.kind == "index":
            count += not trees.index(survey, entry.root).whole
        elif entry.kind == "table" and _rows(catalog, entry.name):
            count += len(trees.table(survey, entry.root).gaps)
    return count


def _rows(catalog: Catalog, name: str) -> bool:
    layout = catalog.layouts.get(name)
    return layout is None or layout.plain
