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
    copies = probes.all_copies(path)
    if not copies:
        raise CannotFix(
            text(
                "No copy of {name} was found. Restore it from a backup of your own.",
                name=finding.subject,
            )
        )
    newest = probes.home.name_of(copies[0].path) + (copies[0].member and f":{copies[0].member}")
    why = text("restore {copy}, or an older copy if it is damaged", copy=newest)
    if copies[0].doubtful:
        why = text("restore {copy}, which may be of another home", copy=newest)
    yield ReplaceDatabase(
        path,
        lambda copy: bring_back(copy, copies),
        why=why,
        expect=snapshot(path),
    )
