"""Decides which findings a watch may repair without asking.

A finding is due when it was found several times in a row, is at least a warning, and has a fix that
need not ask: one marked safe, or one that the operator agreed to beforehand. The watch starts or
stops the gateway only for an error. It never starts a gateway that somebody stopped, and never lets
one run inside its own service.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.model import Finding, Report, Safety, Severity
from hermes_doctor.schedule.systemd import SERVICE_VARIABLE
from hermes_doctor.watch.changes import CurrentFinding, is_grave

if TYPE_CHECKING:
    from hermes_doctor.gateway.base import GatewayControl
    from hermes_doctor.repair.plan import PlannedItem


def is_due(
    finding: Finding,
    report: Report,
    standing: CurrentFinding | None,
    after: int,
    agreed: frozenset[str],
) -> bool:
    """Whether the finding has lasted long enough and its fix needs no confirmation."""
    if standing is None or standing.seen < after or finding.severity is Severity.INFO:
        return False
    if finding.fix is None:
        return False
    safe = report.fixes.get(finding.fix) is Safety.SAFE
    return safe or bool({finding.code, finding.fix} & agreed)


def is_too_early(one: PlannedItem, standing: CurrentFinding | None, after: int) -> bool:
    """Whether the plan starts or stops the gateway for an error younger than `after` rounds."""
    lasting = standing is not None and standing.grave >= after
    return one.controls_gateway and is_grave(one.finding.severity) and not lasting


def refusal(one: PlannedItem, agreed: frozenset[str]) -> str | None:
    """Why the plan is not applied unattended; None if it may be."""
    if one.refusal is not None or one.fix is None:
        return one.refusal or "no fix can do it"
    if one.personal:
        return f"{one.fix.id} lets a person in, whom somebody must know"
    if one.optional:
        return f"{one.fix.id} is a choice that a person must make"
    if one.fix.safety is not Safety.SAFE and not {one.finding.code, one.fix.id} & agreed:
        return f"only {one.fix.id} is left, which asks first"
    if one.controls_gateway and not is_grave(one.finding.severity):
        return "the gateway is not started or stopped for a warning"
    if one.asks and not one.restarts and one.fix.safety is Safety.SAFE:
        return "the gateway did not run when the fault occurred, so its start asks first"
    for owner in _owners(one):
        if not one.restarts and owner.was_stopped_on_purpose():
            return f"somebody stopped it through {owner.describe()}; that is left as it is"
        if os.environ.get(SERVICE_VARIABLE) and not owner.keeps:
            return (
                "nobody owns the gateway, so that one started from here would live inside the "
                "watch's own service; give it a service of its own first"
            )
    return None


def _owners(one: PlannedItem) -> list[GatewayControl]:
    """The supervisors that would start or stop the gateway."""
    from hermes_doctor.gateway.base import GatewayControl
    from hermes_doctor.steps.gateway import GatewayStep

    services = [step.service for step in one.steps if isinstance(step, GatewayStep)]
    return [service for service in services if isinstance(service, GatewayControl)]
