"""Correct or complete what a sound database contains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, Finding, Probes, Safety, fix, snapshot, text
from hermes_doctor.api.tools import count, known_or, listed

if TYPE_CHECKING:
    from hermes_doctor.api import ReplaceDatabase, Step
    from hermes_doctor.api.database import Blueprint, ChangedPart, MissingPart
    from hermes_doctor.api.gateway import Gateway


def _rewrite(
    probes: Probes, finding: Finding, change: Callable[[Path], Sequence[str] | None], why: str
) -> ReplaceDatabase:
    """The step that changes a copy of the database and puts it in place."""
    from hermes_doctor.api import ReplaceDatabase

    path = probes.home / finding.subject
    return ReplaceDatabase(path, change, why=why, expect=snapshot(path))


@fix(id="compact-database", codes=["DB-BLOAT"], safety=Safety.SAFE)
def compact_database(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Rewrite the database without its unused pages."""
    from hermes_doctor.api.repairs import compact

    yield _rewrite(probes, finding, compact, why="rewrite it without its unused pages")


@fix(
    id="complete-schema",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA"],
    safety=Safety.SAFE,
    structural=True,
)
def complete_schema(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add missing tables, columns, indexes and triggers; keep every row."""
    from hermes_doctor.api import GatewayStep, ReplaceDatabase
    from hermes_doctor.api.repairs import complete, gateway_control

    missing: tuple[MissingPart, ...] = finding.data["missing"]
    changed: tuple[ChangedPart, ...] = finding.data["changed"]
    by_hermes: tuple[MissingPart, ...] = finding.data["by_hermes"]
    plan: Blueprint = finding.data["plan"]
    path = probes.home / finding.subject
    if running := known_or([], lambda: probes.gateway.running()):
        _refuse_unstoppable(probes, finding, running)
    if missing or changed:
        yield ReplaceDatabase(
            path,
            lambda copy: complete(copy, plan, missing, changed),
            why=_why(listed([*map(str, missing)]), listed([*map(str, changed)])),
            expect=probes.databases.header(path).snapshot,
        )
    if by_hermes and running:
        why = text("Hermes adds {parts} when it starts", parts=listed([*map(str, by_hermes)]))
        yield GatewayStep(gateway_control(probes), restart=True, why=why)


def _refuse_unstoppable(probes: Probes, finding: Finding, gateways: list[Gateway]) -> None:
    """Refuse beside a gateway that we must not stop, and say if its restart alone is enough."""
    from hermes_doctor.api.repairs import gateway_control

    try:
        gateway_control(probes)
    except CannotFix as why:
        reason = text(
            "The gateway (process {pid}) uses {file} and cannot be stopped. {reason}",
            pid=gateways[0].pid,
            file=finding.subject,
            reason=why,
        )
        parts: tuple[MissingPart, ...] = (*finding.data["missing"], *finding.data["by_hermes"])
        if finding.data["changed"] or any(part.if_missing != "healed" for part in parts):
            raise CannotFix(reason) from None
        raise CannotFix(
            "{reason} Or restart the gateway yourself: Hermes adds what is missing when it starts.",
            reason=reason,
        ) from None


def _why(missing: str, changed: str) -> str:
    if missing and changed:
        return text("add {missing} and correct {changed}", missing=missing, changed=changed)
    if missing:
        return text("add {missing}", missing=missing)
    return text("correct {changed}", changed=changed)


@fix(id="evict-responses", codes=["RESPSTORE"], safety=Safety.SAFE)
def evict_responses(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Remove unreadable answers from the API server's cache."""
    from hermes_doctor.api.repairs import delete_bad_responses

    yield _rewrite(probes, finding, delete_bad_responses, "remove the rows that cannot be read")


_FAULTS = {
    "DB-ACTIVE-NULL": ("active", "mark messages without a mark as active"),
    "DB-TITLES": ("titles", "number titles that several conversations share"),
    "DB-JSON": ("settings", "remove settings of conversations that are not valid JSON"),
    "DB-SCHEMAVERSION": ("version", "make its schema version a number"),
}


@fix(id="mend-rows", codes=list(_FAULTS), safety=Safety.SAFE)
def mend_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Correct the rows that make Hermes fail."""
    from hermes_doctor.api.repairs import correct_rows

    fault, why = _FAULTS[finding.code]
    yield _rewrite(probes, finding, lambda copy: correct_rows(copy, fault), why)


@fix(id="release-claims", codes=["KANBAN-STUCK"], safety=Safety.CONFIRM)
def release_claims(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Release tasks whose worker no longer runs."""
    from hermes_doctor.api.repairs import release_tasks

    held = finding.data.get("tasks") or ()
    tasks = [(str(task), int(worker), str(lock)) for task, worker, lock in held]
    if tasks:
        why = text("release {tasks} of stopped workers", tasks=count(len(tasks), "task"))
        yield _rewrite(probes, finding, lambda copy: release_tasks(copy, tasks), why)


@fix(id="add-retired-rows", codes=["DB-DELETED-WAL"], safety=Safety.CONFIRM)
def add_retired_rows(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add messages of a retired -wal file to the message history."""
    from hermes_doctor.api import repairs

    yield repairs.add_retired_rows(probes, finding.data["folder"])


@fix(id="add-unsaved-turns", codes=["SESSION-UNSAVED"], safety=Safety.CONFIRM)
def add_unsaved_turns(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add unsaved messages to the message history."""
    from hermes_doctor.api import repairs

    yield repairs.add_unsaved_turns(probes)
