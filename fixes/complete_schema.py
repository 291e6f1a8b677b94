"""Add missing parts of a database schema and correct parts that differ from the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix, listed, text

if TYPE_CHECKING:
    from hermes_doctor.api import Blueprint, Changed, Missing, Step


@fix(
    id="complete-schema",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA"],
    safety=Safety.SAFE,
    structural=True,
)
def complete_schema(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add missing tables and columns; keep every row."""
    from hermes_doctor.api import ReplaceDatabase, complete

    missing: tuple[Missing, ...] = finding.data["missing"]
    changed: tuple[Changed, ...] = finding.data["changed"]
    plan: Blueprint = finding.data["plan"]
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path,
        lambda copy: complete(copy, plan, missing, changed),
        why=_why(listed([*map(str, missing)]), listed([*map(str, changed)])),
        expect=probes.header(path).snapshot,
    )


def _why(missing: str, changed: str) -> str:
    if missing and changed:
        return text("add {missing} and correct {changed}", missing=missing, changed=changed)
    if missing:
        return text("add {missing}", missing=missing)
    return text("correct {changed}", changed=changed)
