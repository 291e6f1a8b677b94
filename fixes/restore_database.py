"""Restore a database that is missing, empty or another file from its newest sound copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, count, fix, snapshot, text

if TYPE_CHECKING:
    from hermes_doctor.api import Step


@fix(
    id="restore-database",
    codes=["DB-EMPTY", "DB-GONE", "DB-NOTADB"],
    safety=Safety.CONFIRM,
    then="salvage-rows",
)
def restore_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Restore the newest intact copy of the database."""
    from hermes_doctor.api import NO_COPY, ReplaceDatabase, bring_back

    path = probes.home / finding.subject
    copies = probes.all_copies(path)
    if not copies:
        raise CannotFix(NO_COPY)
    own = [one for one in copies if not one.doubtful]
    newest = (own or copies)[0]
    name = probes.home.name_of(newest.path) + (newest.member and f":{newest.member}")
    if not own:
        why = text("restore {copy}, which may be of another home", copy=name)
    elif len(own) < len(copies):
        why = text(
            "restore {copy}, or an older copy if it is damaged; {left} not used, perhaps of "
            "another home",
            copy=name,
            left=count(len(copies) - len(own), "copy", "copies"),
        )
    else:
        why = text("restore {copy}, or an older copy if it is damaged", copy=name)
    yield ReplaceDatabase(
        path,
        lambda copy: bring_back(copy, copies),
        why=why,
        expect=snapshot(path),
    )
