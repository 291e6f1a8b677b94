"""Add a gateway restart to a plan that replaces files which the running gateway uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.home import is_database
from hermes_doctor.message import listed, text
from hermes_doctor.model import CannotFix, CouldNotLook, Trouble
from hermes_doctor.steps.base import Change, Step
from hermes_doctor.steps.gateway import GatewayStep

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.repair.targets import Item


def add_gateway_restart(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    """Add the gateway restart that the steps need; raise CannotFix if it cannot be stopped.

    What the gateway wrote into a deleted log is saved before it is stopped.
    """
    return _saved_first(probes, _with_gateway(probes, steps))


def _saved_first(probes: Probes, steps: Sequence[Step], *, back: bool = False) -> list[Step]:
    stopped = [step for step in steps if isinstance(step, GatewayStep) and step.restart]
    pid = stopped[0].service.running() if stopped else None
    if pid is None:
        return list(steps)
    from hermes_doctor.planning.deleted_logs import SaveDeletedLogs, save_deleted_logs

    first = save_deleted_logs(probes, pid, compares=not back)
    if first is None or any(isinstance(step, SaveDeletedLogs) for step in steps):
        return list(steps)
    for name in _replaced(steps):
        if not back and name in [Path(one).name for one in first.names]:
            raise CannotFix(
                text(
                    "Process {pid} writes to a deleted write-ahead log of {name}, which must be "
                    "saved first: hermes-doctor fix --apply",
                    pid=first.pids[0],
                    name=name,
                )
            )
    return [first, *steps]


def _with_gateway(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    names = _replaced(steps)
    if not names or any(isinstance(step, GatewayStep) and step.restart for step in steps):
        return list(steps)
    try:
        gateways = probes.gateways()
    except CouldNotLook:  # the run itself checks which processes have them open
        return list(steps)
    if not gateways:
        return list(steps)
    from hermes_doctor.gateway import control

    try:
        service = control.gateway_control(probes)
    except CannotFix as why:
        raise CannotFix(
            text(
                "The gateway (process {pid}) uses {file} and cannot be stopped. {reason}",
                file=names[0],
                pid=gateways[0].pid,
                reason=why,
            )
        ) from None
    kept = [step for step in steps if not isinstance(step, GatewayStep)]
    reason = f"it must not use {listed(names)} during the repair"
    return [*kept, GatewayStep(service, restart=True, why=reason)]


def add_restarts_for_restore(
    probes: Probes, items: Sequence[Item], *, stores: bool = False
) -> None:
    """Add the gateway restart to items that undo or restore; if impossible, the run reports it.

    With `stores`, also for other files that a gateway keeps in memory: it would ignore the restored
    content, or overwrite it with what it has in memory.
    """
    if stores:
        _with_stores(probes, items)
    for item in items:
        try:
            item.steps = _saved_first(probes, _back(probes, item.steps), back=True)
        except (CannotFix, CouldNotLook):
            continue
        item.record.steps = [step.sentence() for step in item.steps]


def _with_stores(probes: Probes, items: Sequence[Item]) -> None:
    """Add a restart for files that the gateway has in memory; raise Trouble if it cannot stop."""
    from hermes_doctor.backup.selection import READ_ON_DEMAND, matches
    from hermes_doctor.gateway import control

    def held(step: Step) -> bool:
        names = [probes.home.name_of(change.path) for change in step.changes()]
        return any(not any(matches(name, glob) for glob in READ_ON_DEMAND) for name in names)

    holding = [item for item in items if any(held(step) for step in item.steps)]
    try:
        gateways = probes.gateways() if holding else []
    except CouldNotLook:
        return
    if not gateways:
        return
    try:
        service = control.gateway_control(probes)
    except CannotFix as error:
        raise Trouble(
            text(
                "The gateway (process {pid}) must not run while {subject} is restored, and it "
                "cannot be stopped. {reason}. Nothing was changed.",
                pid=gateways[0].pid,
                subject=holding[0].record.subject,
                reason=str(error).rstrip("."),
            )
        ) from None
    why = "it would overwrite the restored files with what it has in memory"
    holding[0].steps = [*holding[0].steps, GatewayStep(service, restart=True, why=why)]


def _back(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    from hermes_doctor.gateway import control
    from hermes_doctor.planning.install_service import restart_without_unit
    from hermes_doctor.steps import machine

    for step in steps:
        if not isinstance(step, machine.RevertAction) or not probes.gateways():
            continue
        if isinstance(step.action, machine.InstallService):
            return [*steps, restart_without_unit(probes, step.action)]
        if isinstance(step.action, machine.ReloadUnits):
            why = "it reads its settings when it starts"
            return [*steps, GatewayStep(control.gateway_control(probes), restart=True, why=why)]
    return _with_gateway(probes, steps)


def interrupts_gateway(steps: Sequence[Step]) -> bool:
    """Whether the steps interrupt a running gateway."""
    for step in steps:
        if isinstance(step, GatewayStep) and step.restart:
            try:
                return step.service.running() is not None
            except CannotFix:
                return True
    return False


def _replaced(steps: Sequence[Step]) -> list[str]:
    changes: list[Change] = [change for step in steps for change in step.changes()]
    return [
        change.path.name
        for change in changes
        if is_database(change.path) and change.make is not None
    ] or [change.path.name for change in changes if is_database(change.path) and change.absent]
