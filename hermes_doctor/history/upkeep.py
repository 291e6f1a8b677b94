"""Prunes the history on request, for `history prune`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.history import database, identity, pruning
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import count, listed, text
from hermes_doctor.model import Trouble

if TYPE_CHECKING:
    from sqlite_utils import Database


class Pruned(NamedTuple):
    """What was removed from a file, and how many bytes it still has."""

    removed: pruning.Removed
    size: int


def prune_file(path: Path, keep: int, home: Home | None = None) -> Pruned:
    """Remove what is older than this many seconds, and shrink the file if that is worth it.

    Without a home, that is done for all homes in the file.
    """
    try:
        with database.transaction(path, verify=True) as db:
            removed = _prune(db, keep, home)
            shrinks = pruning.is_worth_shrinking(db)
    except database.Damaged as why:
        raise Trouble(
            text(
                "The history is damaged ({why}), so nothing was removed: {path}. The watch sets it "
                "aside at its next check and starts a new one.",
                why=why,
                path=path,
            )
        ) from None
    if shrinks:
        try:
            database.vacuum(path)
        except database.Damaged as why:
            raise Trouble(
                text(
                    "{removed} were removed, but the history is damaged ({why}): {path}. The "
                    "watch sets it aside at its next check and starts a new one.",
                    removed=describe(removed),
                    why=why,
                    path=path,
                )
            ) from None
    return Pruned(removed, os.path.getsize(path))


def _prune(db: Database, keep: int, home: Home | None) -> pruning.Removed:
    now = int(time.time())
    if home is None:
        return pruning.prune(db, now, keep)
    row = identity.find_row(
        list(db.table("homes").rows),
        identity.stored_path(home.path),
        identity.identity_of(home.path),
        identity.boot_id(),
    )
    return pruning.prune(db, now, keep, int(row["id"])) if row else pruning.Removed()


def describe(removed: pruning.Removed) -> str:
    """What was removed, for people."""
    parts = zip(removed, ("episode", "hour", "mark", "home"), strict=True)
    return listed([count(number, noun) for number, noun in parts])
