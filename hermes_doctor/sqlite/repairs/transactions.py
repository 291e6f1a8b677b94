"""A transaction that was cut off is SQLite's own business: it takes it back at the next opening."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.repairs.work import at_work
from hermes_doctor.system.files import snapshot


def take_back(copy: Path) -> list[str]:
    """Open the copy with its journal beside it, so that SQLite plays that back."""
    journal = copy.with_name(copy.name + "-journal")
    if snapshot(journal).kind != "file":
        raise CannotFix("the journal is gone")
    with at_work(copy) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if snapshot(journal).kind != "absent":
        raise CannotFix("SQLite did not play the journal back")
    return ["The transaction that had not ended was taken back."]
