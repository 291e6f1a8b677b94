"""Save the rows of a damaged copy, if the database is lost and no copy of it is sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.file_copies import DatabaseCopy
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix, CouldNotLook
from hermes_doctor.sqlite.blueprint import Blueprint
from hermes_doctor.sqlite.files import sidecars
from hermes_doctor.sqlite.repairs.from_copy import copy_candidate
from hermes_doctor.sqlite.salvage.salvage import salvage
from hermes_doctor.system import disk


def save_rows_of_copy(copy: Path, plan: Blueprint, candidates: Sequence[DatabaseCopy]) -> list[str]:
    """Replace `copy` by a new database with the readable rows of the newest copy that has any."""
    rescued = copy.with_name(copy.name + ".rescued")
    for one in candidates:
        for old in (copy, *sidecars(copy), rescued, *sidecars(rescued)):
            disk.remove(old)
        try:
            copy_candidate(one, copy)
            account = salvage(copy, rescued, plan)
        except (CannotFix, CouldNotLook):
            continue
        if any(table.kept for table in account.tables if table.name != "schema_version"):
            for old in sidecars(copy):
                disk.remove(old)
            disk.rename(rescued, copy)
            where = f"{one.path.parent.name}/{one.path.name}"
            said = text("The rows are from the damaged copy {copy}.", copy=where)
            return [said, *account.sentences]
    for left in (rescued, *sidecars(rescued)):
        disk.remove(left)
    raise CannotFix("no row of a copy can be read")
