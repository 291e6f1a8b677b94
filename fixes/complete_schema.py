"""Add missing parts of a database schema and correct parts that differ from the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Finding, Probes, Safety, fix

if TYPE_CHECKING:
    from hermes_doctor.api import Blueprint, Changed, Missing, Step


@fix(
    id="complete-schema",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA"],
    safety=Safety.SAFE,
    structural=True,
)
def complete_schema(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Make what is missing or otherwise as the release declares it, on a copy, every row kept."""
    from hermes_doctor.api import ReplaceDatabase, complete

    missing: tuple[Missing, ...] = finding.data["missing"]
    changed: tuple[Changed, ...] = finding.data["changed"]
    plan: Blueprint = finding.data["plan"]
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path,
        lambda copy: complete(copy, plan, missing, changed),
        why=" and ".join(
            f"{verb} {', '.join(map(str, parts))}"
            for verb, parts in (("add", missing), ("declare anew", changed))
            if parts
        ),
        expect=probes.header(path).snapshot,
    )
