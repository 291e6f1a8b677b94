"""Add missing parts of a database schema and correct parts that differ from the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CannotFix, CouldNotLook, Finding, Probes, Safety, fix, listed, text

if TYPE_CHECKING:
    from hermes_doctor.api import Blueprint, Changed, Gateway, Missing, Step


@fix(
    id="complete-schema",
    codes=["KANBAN-SCHEMA", "DB-SCHEMA"],
    safety=Safety.SAFE,
    structural=True,
)
def complete_schema(probes: Probes, finding: Finding) -> Iterator[Step]:
    """Add missing tables, columns, indexes and triggers; keep every row."""
    from hermes_doctor.api import GatewayStep, ReplaceDatabase, complete, gateway_service

    missing: tuple[Missing, ...] = finding.data["missing"]
    changed: tuple[Changed, ...] = finding.data["changed"]
    by_hermes: tuple[Missing, ...] = finding.data["by_hermes"]
    plan: Blueprint = finding.data["plan"]
    path = probes.home / finding.subject
    if running := _running(probes):
        _refuse_unstoppable(probes, finding, running)
    if missing or changed:
        yield ReplaceDatabase(
            path,
            lambda copy: complete(copy, plan, missing, changed),
            why=_why(listed([*map(str, missing)]), listed([*map(str, changed)])),
            expect=probes.header(path).snapshot,
        )
    if by_hermes and running:
        why = text("Hermes adds {parts} when it starts", parts=listed([*map(str, by_hermes)]))
        yield GatewayStep(gateway_service(probes), restart=True, why=why)


def _running(probes: Probes) -> list[Gateway]:
    try:
        return probes.gateways()
    except CouldNotLook:  # the run itself checks which processes have the database open
        return []


def _refuse_unstoppable(probes: Probes, finding: Finding, gateways: list[Gateway]) -> None:
    """Refuse beside a gateway that we must not stop, and say if its restart alone is enough."""
    from hermes_doctor.api import gateway_service

    try:
        gateway_service(probes)
    except CannotFix as why:
        reason = text(
            "The gateway (process {pid}) uses {file} and cannot be stopped. {reason}",
            pid=gateways[0].pid,
            file=finding.subject,
            reason=why,
        )
        parts: tuple[Missing, ...] = (*finding.data["missing"], *finding.data["by_hermes"])
        if finding.data["changed"] or any(part.if_missing != "healed" for part in parts):
            raise CannotFix(reason) from None
        raise CannotFix(
            text(
                "{reason} Or restart the gateway yourself: Hermes adds what is missing when it "
                "starts.",
                reason=reason,
            )
        ) from None


def _why(missing: str, changed: str) -> str:
    if missing and changed:
        return text("add {missing} and correct {changed}", missing=missing, changed=changed)
    if missing:
        return text("add {missing}", missing=missing)
    return text("correct {changed}", changed=changed)
