"""Create a new, empty database in the place of one of which nothing can be read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.file_copies import DatabaseCopy
from hermes_doctor.home import Home
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite import wal
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.creation import create
from hermes_doctor.sqlite.errors import name_of
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.first_page import has_rows
from hermes_doctor.sqlite.repairs import rescue
from hermes_doctor.sqlite.salvage.salvage import salvage
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot


class Refusal(NamedTuple):
    """What is needed to find out whether a database may still have rows."""

    name: str
    home: Home
    copies: Sequence[DatabaseCopy]


def create_empty(copy: Path, plan: Blueprint, lost: str, rows: Refusal) -> list[str]:
    """Replace `copy` by a new database with the schema of a release; return what is lost.

    Raises CannotFix if the copy may still have rows.
    """
    log = copy.with_name(copy.name + "-wal")
    if (has_rows(copy, whole=True) or snapshot(log).size > wal.HEAD) and not _is_empty(
        copy, plan, rows
    ):
        raise CannotFix(
            text(
                "{name} may still have rows that hermes-doctor cannot read, so it is not replaced "
                "by an empty database. Copy the file to a safe place, then restore a backup.",
                name=rows.name,
            )
        )
    for old in (copy, *sidecars(copy)):
        disk.remove(old)
    try:
        with contextlib.closing(create(copy, plan)) as database:
            database.execute("PRAGMA journal_mode=WAL")
            made = {row[0] for row in database.execute("SELECT name FROM sqlite_master")}
    except sqlite3.Error as error:
        raise CannotFix(
            text("SQLite cannot create the new database ({error})", error=name_of(error))
        ) from error
    expected = [one.name for one in plan.tables.values() if not one.created_on_demand]
    if missing := [name for name in expected if name not in made]:
        raise CannotFix(text("the new database lacks the table {table}", table=missing[0]))
    return [lost]


def _is_empty(copy: Path, plan: Blueprint, rows: Refusal) -> bool:
    """Whether a salvage works and finds no row; it may also fail for another reason."""
    saved = copy.with_name(copy.name + ".rescued")
    try:
        older = rescue.sources(plan, rows.home, rows.copies)
        found = salvage(copy, saved, plan, older_copies=older)
    except (CannotFix, CouldNotLook, OSError):
        return False
    finally:
        for left in (saved, *sidecars(saved)):
            disk.remove(left)
    return not any(table.kept for table in found.tables if table.name != "schema_version")
