"""Let SQLite roll back an interrupted transaction from its journal."""

from __future__ import annotations

from pathlib import Path

from hermes_doctor.model import CannotFix
from hermes_doctor.sqlite.repairs.work import open_copy
from hermes_doctor.system.files import snapshot


def roll_back(copy: Path) -> list[str]:
    """Open the copy with its journal, so that SQLite plays the journal back."""
    journal = copy.with_name(copy.name + "-journal")
    if snapshot(journal).kind != "file":
        raise CannotFix("the journal is missing")
    with open_copy(copy) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if snapshot(journal).kind != "absent":
        raise CannotFix("SQLite did not roll the transaction back")
    return ["The unfinished transaction was undone."]
