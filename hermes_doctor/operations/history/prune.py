"""Removes from the history what is too old or too much: daily by the watch, or on request."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes_doctor.core.home import Home
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import count, listed
from hermes_doctor.core.model import Trouble
from hermes_doctor.operations.history import database, place
from hermes_doctor.operations.history.layout import DAY, from_text, to_text

if TYPE_CHECKING:
    from sqlite_utils import Database


class Pruned(NamedTuple):
    """What was removed from a file, and how many bytes it still has."""

    removed: Removed
    size: int


def prune_file(path: Path, keep: int, home: Home | None = None) -> Pruned:
    """Remove what is older than this many seconds, and shrink the file if that is worth it.

    Without a home, that is done for all homes in the file.
    """
    try:
        with database.transaction(path, verify=True) as db:
            removed = _prune(db, keep, home)
            shrinks = is_worth_shrinking(db)
    except database.Damaged as why:
        raise Trouble(
            "The history is damaged ({why}), so nothing was removed: {path}. The watch sets it "
            "aside at its next check and starts a new one.",
            why=why,
            path=path,
        ) from None
    if shrinks:
        try:
            database.vacuum(path)
        except database.Damaged as why:
            raise Trouble(
                "{removed} were removed, but the history is damaged ({why}): {path}. The "
                "watch sets it aside at its next check and starts a new one.",
                removed=describe(removed),
                why=why,
                path=path,
            ) from None
    return Pruned(removed, os.path.getsize(path))


def _prune(db: Database, keep: int, home: Home | None) -> Removed:
    now = int(time.time())
    if home is None:
        return prune(db, now, keep)
    row = place.find_row(
        list(db.table("homes").rows),
        place.stored_path(home.path),
        place.identity_of(home.path),
        place.boot_id(),
    )
    return prune(db, now, keep, int(row["id"])) if row else Removed()


def describe(removed: Removed) -> str:
    parts = zip(removed, ("episode", "hour", "mark", "home"), strict=True)
    return listed([count(number, noun) for number, noun in parts])


KEEP = 400 * DAY
"""How long the watch keeps what it recorded: a year and a month."""
STEADY = 7 * DAY
"""How long the clock must have been steady before old records are removed automatically."""
MOST = {"episodes": 20_000, "marks": 10_000}
"""Rows to keep for each home."""
WORTH = 1024 * 1024
"""Free bytes in the file from which on it is worth shrinking, if they are a quarter of it."""


_BEGIN_LATER = "UPDATE homes SET first_seen = max(first_seen, ?)"


class Removed(NamedTuple):
    """How many rows were removed."""

    episodes: int = 0
    hours: int = 0
    marks: int = 0
    homes: int = 0


def prune_daily(db: Database, row: Any, at: int) -> dict[str, Any]:
    """Once a day, remove old records of a home; not while the clock may be wrong."""
    if row["pruned"] and 0 <= at - from_text(row["pruned"]) < DAY:
        return {}
    if row["steady_since"] and at - from_text(row["steady_since"]) >= STEADY:
        _remove(db, "home = :home and ", {"home": row["id"]}, at - KEEP)
        db.execute(_BEGIN_LATER + " WHERE id = ?", (to_text(max(0, at - KEEP)), row["id"]))
        _forget_homes(db, at - KEEP, at - KEEP)
    for table, most in MOST.items():
        open_first = "ended IS NULL DESC, " if table == "episodes" else ""
        db.execute(
            f"DELETE FROM {table} WHERE home = ? AND id NOT IN "
            f"(SELECT id FROM {table} WHERE home = ? ORDER BY {open_first}id DESC LIMIT ?)",
            (row["id"], row["id"], most),
        )
    return {"pruned": to_text(at)}


def prune(db: Database, at: int, keep: int, home: int | None = None) -> Removed:
    """Remove what is older than this of one home or of all; an open problem stays."""
    before = to_text(max(0, at - keep))
    if home is None:
        removed = _remove(db, "", {}, at - keep)
        db.execute(_BEGIN_LATER, (before,))
    else:
        removed = _remove(db, "home = :home and ", {"home": home}, at - keep)
        db.execute(_BEGIN_LATER + " WHERE id = ?", (before, home))
    return removed._replace(homes=_forget_homes(db, at - keep, at - KEEP, home))


def _forget_homes(db: Database, before: int, longest: int, home: int | None = None) -> int:
    """Remove homes without a record since a moment, with all that is known of them.

    One with an open problem is removed only if its last record is older than `longest`, too.
    """
    where = (
        "last_seen < :before AND (:home IS NULL OR id = :home) AND (last_seen < :longest "
        "OR id NOT IN (SELECT home FROM episodes WHERE ended IS NULL))"
    )
    times = {"before": to_text(max(0, before)), "longest": to_text(max(0, longest))}
    gone = _delete(db, "homes", where, {**times, "home": home})
    for table in ("episodes", "hours", "marks") if gone else ():
        db.execute(f"DELETE FROM {table} WHERE home NOT IN (SELECT id FROM homes)")
    return gone


def is_worth_shrinking(db: Database) -> bool:
    """Whether the file has so many free pages that VACUUM makes it notably smaller."""
    free, pages, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("freelist_count", "page_count", "page_size")
    )
    return free * size > WORTH and free * 4 > pages


def _remove(db: Database, only: str, values: dict[str, Any], before: int) -> Removed:
    values = {**values, "before": to_text(max(0, before))}
    return Removed(
        episodes=_delete(db, "episodes", f"{only}ended < :before", values),
        hours=_delete(db, "hours", f"{only}hour < :before", values),
        marks=_delete(db, "marks", f"{only}at < :before", values),
    )


def _delete(db: Database, table: str, where: str, values: dict[str, Any]) -> int:
    return int(db.execute(f"DELETE FROM {table} WHERE {where}", values).rowcount)
