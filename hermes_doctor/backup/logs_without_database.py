"""The rows of a write-ahead log that a backup has without its database."""

from __future__ import annotations

import contextlib
from pathlib import Path

from hermes_doctor.backup.row_comparison import Contents, Counted, row_of, sums_of
from hermes_doctor.home import Home
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.system.files import MEGABYTE, size, snapshot

LARGEST = 32 * MEGABYTE
"""Bytes of a log whose rows are read: they are all in memory at once."""


def contents(home: Home, log: Path, name: str, counted: Counted, key: bytes) -> Contents:
    """The messages of a log that was written for the database `name`.

    Raises CouldNotLook if not every row can be read.
    """
    from hermes_doctor.planning import database_rungs
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.sqlite.salvage import log_rows

    if counted.table != log_rows.MESSAGES:
        raise CouldNotLook("only the log of a message history can be read alone")
    if (length := snapshot(log).size) > LARGEST:
        raise CouldNotLook(f"the rows of a log of {size(length)} are not read")
    try:
        with contextlib.closing(Probes(home)) as probes:
            found = log_rows.read(log, database_rungs.plan_of(probes, home.path / name))
    except CannotFix as why:
        raise CouldNotLook(str(why).rstrip(".")) from None
    if found.partial:
        raise CouldNotLook(
            f"{log_rows.number(found.partial, 'row')} of it can be read only in part"
        )
    rows = [row_of(one, counted, key) for one in found.messages.values()]
    return Contents(sums_of(rows), lambda: contextlib.nullcontext(rows))
