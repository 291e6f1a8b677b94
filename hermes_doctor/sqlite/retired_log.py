"""Compare a write-ahead log that Hermes set aside with the message history.

Hermes 0.21 and later copies a log that was deleted or replaced under it into a folder, together
with the database file of that moment. Other processes may have written to the file before, so the
two are used only if SQLite's counters agree and the file with the log on top is sound.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CouldNotLook
from hermes_doctor.sqlite import header, log_ancestry, saved_rows, wal
from hermes_doctor.sqlite.saved_rows import Ask, MissingMessages, SavedMessages
from hermes_doctor.system import privileges
from hermes_doctor.system.files import MEGABYTE, size, snapshot
from hermes_doctor.system.open_files import open_owned

DATABASE = "state.db"
LARGEST = 256 * MEGABYTE
"""The maximum size in bytes of a log that is read."""


class RetiredRows(NamedTuple):
    """The messages of a log that was set aside, and those of them that the history lacks."""

    saved: SavedMessages
    missing: MissingMessages


def files_of(folder: Path) -> tuple[Path, Path]:
    """The copy of the database and the log in such a folder; raise CouldNotLook if one lacks."""
    main, log = folder / DATABASE, folder / f"{DATABASE}-wal"
    if snapshot(main).kind != "file":
        raise CouldNotLook("it has no copy of the database")
    taken = snapshot(log)
    if taken.kind != "file" or taken.size <= wal.HEAD:
        raise CouldNotLook("it has no write-ahead log (-wal)")
    if taken.size > LARGEST:
        raise CouldNotLook(text("its log is too large to read ({size})", size=size(taken.size)))
    return main, log


def compare(
    folder: Path, live: Ask, wanted_since: Callable[[], float], seconds: float | None
) -> RetiredRows:
    """Find the messages of the log that the live history lacks.

    SQLite has so many seconds to check the copy; None for no limit. Raises CouldNotLook if the log
    cannot be trusted to belong to the copy beside it, or if root could not read the copy with the
    rights of the home's owner, who may put a symlink to another home there.
    """
    main, log = files_of(folder)
    owner = privileges.of(main)
    if owner is not None and not owner.can_reach:
        raise CouldNotLook("the owner of the home cannot reach it by this path")
    fd = open_owned(log)
    try:
        ancestry = log_ancestry.of_log(header.read(main, open_owned), fd, wal.read(fd))
    finally:
        os.close(fd)
    if ancestry.level == log_ancestry.IMPOSSIBLE:
        raise CouldNotLook(
            text("the log does not belong to the copy next to it: {why}", why=ancestry.what)
        )
    with saved_rows.open_saved(main, seconds, owner) as (whole, _):
        try:
            sound = [row[0] for row in whole("PRAGMA quick_check(1)")] == ["ok"]
        except saved_rows.TooSlow as why:
            raise CouldNotLook(text("{reason}; use --deep", reason=str(why))) from why
        if not sound:
            raise CouldNotLook("the copy with its log is damaged")
    saved = saved_rows.read_messages(main, owner)
    return RetiredRows(saved, saved_rows.find_missing_messages(saved, live, wanted_since))
