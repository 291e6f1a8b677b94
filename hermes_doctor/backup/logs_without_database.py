"""Read the rows of a write-ahead log that a backup has without its database."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.row_comparison import ComparedRows, Contents, row_of, summarize
from hermes_doctor.home import Home
from hermes_doctor.message import count, text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system.files import MEGABYTE, size, snapshot

if TYPE_CHECKING:
    from hermes_doctor.sqlite.blueprint import Blueprint

LARGEST = 32 * MEGABYTE
"""Largest log, in bytes, whose rows are read: they are all in memory at once."""


def messages_of_log(
    home: Home, log: Path, name: str, counted: ComparedRows, key: bytes
) -> Contents:
    """The messages of a log that was written for the database `name`.

    Raises CouldNotLook if not every row can be read.
    """
    from hermes_doctor.sqlite.salvage import log_rows

    if counted.table != log_rows.MESSAGES:
        raise CouldNotLook("only the write-ahead log of state.db can be read alone")
    if (length := snapshot(log).size) > LARGEST:
        raise CouldNotLook(
            text("the write-ahead log is too large to read ({size})", size=size(length))
        )
    try:
        found = log_rows.read(log, _blueprint(home, name))
    except CannotFix as why:
        raise CouldNotLook(str(why).rstrip(".")) from None
    if found.partial:
        raise CouldNotLook(
            text("{rows} can be read only in part", rows=count(found.partial, "row"))
        )
    rows = [row_of(one, counted, key) for one in found.messages.values()]
    return Contents(summarize(rows), lambda: contextlib.nullcontext(rows))


def _blueprint(home: Home, name: str) -> Blueprint:
    """The schema of the database: by its own columns, else that of the newest known release."""
    from hermes_doctor.knowledge import atlas
    from hermes_doctor.sqlite import schema

    kind = atlas.kind_of(name)
    if kind is None:
        raise CouldNotLook(text("the tables of {name} are unknown", name=name))
    try:
        found = schema.read(home.path / name)
    except (CouldNotLook, FileNotFoundError):  # its schema is damaged or gone
        plan = atlas.blueprint_at_or_below(kind, None)
    else:
        if atlas.is_from_newer_release(kind, found):
            raise CouldNotLook(
                text("{name} was written by a newer Hermes than hermes-doctor knows", name=name)
            )
        plan = atlas.richest_blueprint(kind, None, found)
    if plan is None:
        raise CouldNotLook(text("the tables of {name} are unknown", name=name))
    return plan
