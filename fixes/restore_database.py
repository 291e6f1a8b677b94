"""Restore a database that is missing, empty or another file from its newest sound copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(id="restore-database", codes=["DB-EMPTY", "DB-GONE", "DB-NOTADB"], safety=Safety.CONFIRM)
def restore_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the newest intact copy of the database."""
    from hermes_doctor.api import ReplaceDatabase, bring_back

    path = probes.home / finding.subject
    copies = probes.copies(path)
    if not copies:
        raise CannotFix(
            text(
                "No copy of {name} was found. Restore it from a backup of your own.",
                name=finding.subject,
            )
        )
    newest = probes.home.name_of(copies[0].path)
    yield ReplaceDatabase(
        path,
        lambda copy: bring_back(copy, copies),
        why=text("restore {copy}, or an older copy if it is damaged", copy=newest),
        expect=snapshot(path),
    )
