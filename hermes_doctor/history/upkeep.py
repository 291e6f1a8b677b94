"""Prunes the history on request, for `history prune`."""

from __future__ import annotations

import os
import time
from pathlib import Path

from hermes_doctor.history import database, pruning
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import count, listed, text
from hermes_doctor.model import Trouble


class Pruned(NamedTuple):
    """What was removed from a file, and how many bytes it still has."""

    removed: pruning.Removed
    size: int


def prune_file(path: Path, keep: int) -> Pruned:
    """Remove what is older than this many seconds, and shrink the file if that is worth it."""
    try:
        with database.transaction(path, verify=True) as db:
            removed = pruning.prune(db, int(time.time()), keep)
            shrinks = pruning.is_worth_shrinking(db)
        if shrinks:
            database.vacuum(path)
    except database.Damaged as why:
        raise Trouble(
            text(
                "The history is damaged ({why}), so nothing was removed: {path}. The watch sets it "
                "aside at its next check and starts a new one.",
                why=why,
                path=path,
            )
        ) from None
    return Pruned(removed, os.path.getsize(path))


def describe(removed: pruning.Removed) -> str:
    """What was removed, for people."""
    parts = zip(removed, ("episode", "hour", "mark", "home"), strict=True)
    return listed([count(number, noun) for number, noun in parts])
