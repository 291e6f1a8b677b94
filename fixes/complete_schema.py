"""Give a database the parts of its schema that it lacks and Hermes does not add by itself."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Blueprint,
    Finding,
    Missing,
    Probes,
    ReplaceDatabase,
    Safety,
    Step,
    complete,
    fix,
)


@fix(id="complete-schema", codes=["KANBAN-SCHEMA", "DB-SCHEMA"], safety=Safety.SAFE)
def complete_schema(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add what is missing as the release declares it, on a copy, with every row kept."""
    missing: tuple[Missing, ...] = finding.data["missing"]
    plan: Blueprint = finding.data["plan"]
    path = probes.home / finding.subject
    yield ReplaceDatabase(
        path,
        lambda copy: complete(copy, plan, missing),
        why=f"add {', '.join(map(str, missing))}",
        expect=probes.header(path).snapshot,
    )
