"""Add a gateway restart to a plan that replaces files which the running gateway uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hermes_doctor.backup.vault.selection import is_read_on_demand
from hermes_doctor.core.home import CACHES, is_database
from hermes_doctor.core.message import listed, text
from hermes_doctor.core.model import CannotFix, CouldNotLook, Finding, Trouble
from hermes_doctor.core.system.files import snapshot
from hermes_doctor.diagnosis.examination.ranking import platform_of
from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Change, Step
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.steps.gateway import GatewayStep
from hermes_doctor.repair.transaction.targets import Item


def add_gateway_restart(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    """Add the gateway restart that the steps need; raise CannotFix if it cannot be stopped.

    What the gateway wrote into a deleted log is saved before it is stopped.
    """
    return _saved_first(probes, _with_gateway(probes, steps))


def require_connections(probes: Probes, finding: Finding, steps: Sequence[Step]) -> Iterator[Step]:
    """Yield the steps; those for the gateway say which platforms must be connected afterwards.

    A fix for one platform has helped once that platform is connected. A gateway that was down has
    to connect all of its platforms.
    """
    for step in steps:
        if not isinstance(step, GatewayStep):
            yield step
            continue
        try:
            names = [platform.name for platform in probes.settings.platforms()]
        except CouldNotLook:
            names = []
        own = [name for name in names if name == platform_of(finding)]
        yield replace(step, platforms=tuple(own or ([] if step.restart else names)))


def unsafe_start(probes: Probes, repaired: Collection[Path]) -> str | None:
    """Why Hermes must not start: it would delete the last rows of a database, or damage it more.

    If a database is missing or has 0 bytes, SQLite deletes its write-ahead log as soon as Hermes
    opens it. `repaired` are the paths that the same run puts in place before the start.
    """
    database_list = probes.databases.files()
    for path in (*database_list.missing, *database_list.paths):
        log = path.with_name(f"{path.name}-wal")
        if path not in repaired and _size(path) == 0 and _size(log) > 0:
            return text(
                "{log} has the last rows of {name}, which is gone. Hermes would delete them when "
                "it starts. First repair what `hermes-doctor check` reports about {name}.",
                log=log.name,
                name=probes.home.name_of(path),
            )
    for name, path, condition in probes.databases.conditions():
        if name in CACHES or name.rpartition("/")[2] == "kanban.db" or condition.stale_log:
            harms = False
        else:
            damaged = condition.damage is not None and bool(condition.damage.rows)
            harms = damaged or condition.truncated is not None or condition.fault is not None
        if path not in repaired and harms:
            return text(
                "{name} is damaged, and Hermes would damage it further when it starts. First "
                "repair it: `hermes-doctor fix` shows how and changes nothing.",
                name=name,
            )
    return None


def _size(path: Path) -> int:
    taken = snapshot(path)
    return taken.size if taken.kind == "file" else 0 if taken.kind == "absent" else -1


def starts_stopped(steps: Sequence[Step]) -> bool:
    for step in steps:
        if isinstance(step, GatewayStep) and (step.expected or not step.restart):
            try:
                return step.service.running() is None
            except CannotFix:
                return False
    return False


def _saved_first(probes: Probes, steps: Sequence[Step], *, back: bool = False) -> list[Step]:
    stopped = [step for step in steps if isinstance(step, GatewayStep) and step.restart]
    pid = stopped[0].service.running() if stopped else None
    if pid is None:
        return list(steps)
    from hermes_doctor.repair.planning.deleted_logs import SaveDeletedLogs, save_deleted_logs

    first = save_deleted_logs(probes, pid, compares=not back)
    if first is None or any(isinstance(step, SaveDeletedLogs) for step in steps):
        return list(steps)
    for name in _replaced(steps):
        if not back and name in [Path(one).name for one in first.names]:
            raise CannotFix(
                "Process {pid} writes to a deleted write-ahead log of {name}, which must be "
                "saved first: hermes-doctor fix --apply",
                pid=first.pids[0],
                name=name,
            )
    return [first, *steps]


def _with_gateway(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    names = _replaced(steps)
    if not names or any(isinstance(step, GatewayStep) and step.restart for step in steps):
        return list(steps)
    try:
        gateways = probes.gateway.running()
    except CouldNotLook:  # the run itself checks which processes have them open
        return list(steps)
    if not gateways:
        return list(steps)
    try:
        service = control.gateway_control(probes)
    except CannotFix as why:
        raise CannotFix(
            "The gateway (process {pid}) uses {file} and cannot be stopped. {reason}",
            file=names[0],
            pid=gateways[0].pid,
            reason=why,
        ) from None
    kept = [step for step in steps if not isinstance(step, GatewayStep)]
    reason = f"it must not use {listed(names)} during the repair"
    return [*kept, GatewayStep(service, restart=True, why=reason)]


def add_restarts_for_restore(
    probes: Probes,
    items: Sequence[Item],
    *,
    stores: bool = False,
    was_running: bool | None = None,
) -> None:
    """Add the gateway restart to items that undo or restore; if impossible, the run reports it.

    With `stores`, also for other files that a gateway keeps in memory: it would ignore the restored
    content, or overwrite it with what it has in memory. `was_running` tells an undo whether a
    gateway shall run afterwards; None if it shall stay as it is.
    """
    if was_running is not None and items and _set_running(probes, items[0], wanted=was_running):
        return
    if stores:
        _with_stores(probes, items)
    for item in items:
        try:
            item.steps = _saved_first(probes, _back(probes, item.steps), back=True)
        except (CannotFix, CouldNotLook):
            continue
        item.record.steps = [step.sentence() for step in item.steps]


def _set_running(probes: Probes, item: Item, *, wanted: bool) -> bool:
    """Add the step that stops or starts the gateway; return whether one is needed."""
    try:
        if bool(probes.gateway.running()) is wanted:
            return False
        service = control.gateway_control(probes)
    except (CannotFix, CouldNotLook) as error:
        raise Trouble("{reason}. Nothing was changed.", reason=str(error).rstrip(".")) from None
    step = (
        GatewayStep(service, restart=False, why="it ran before", expected=True)
        if wanted
        else GatewayStep(service, restart=True, why="it was not running before", stays_down=True)
    )
    steps = [*item.steps, step] if wanted else [step, *item.steps]  # as they are done
    item.steps = _saved_first(probes, steps, back=True)
    item.record.steps = [one.sentence() for one in item.steps]
    return True


def _with_stores(probes: Probes, items: Sequence[Item]) -> None:
    """Add a restart for files that the gateway has in memory; raise Trouble if it cannot stop."""

    def held(step: Step) -> bool:
        names = [probes.home.name_of(change.path) for change in step.changes()]
        return not all(map(is_read_on_demand, names))

    holding = [item for item in items if any(held(step) for step in item.steps)]
    try:
        gateways = probes.gateway.running() if holding else []
    except CouldNotLook:
        return
    if not gateways:
        return
    try:
        service = control.gateway_control(probes)
    except CannotFix as error:
        raise Trouble(
            "The gateway (process {pid}) must not run while {subject} is restored, and it "
            "cannot be stopped. {reason}. Nothing was changed.",
            pid=gateways[0].pid,
            subject=holding[0].record.subject,
            reason=str(error).rstrip("."),
        ) from None
    why = "it would overwrite the restored files with what it has in memory"
    holding[0].steps = [*holding[0].steps, GatewayStep(service, restart=True, why=why)]


def _back(probes: Probes, steps: Sequence[Step]) -> list[Step]:
    from hermes_doctor.repair.planning.install_service import restart_without_unit
    from hermes_doctor.repair.steps import machine

    for step in steps:
        if not isinstance(step, machine.RevertAction) or not probes.gateway.running():
            continue
        if isinstance(step.action, machine.InstallService):
            return [*steps, restart_without_unit(probes, step.action)]
        if isinstance(step.action, machine.ReloadUnits):
            why = "it reads its settings when it starts"
            return [*steps, GatewayStep(control.gateway_control(probes), restart=True, why=why)]
    return _with_gateway(probes, steps)


def interrupts_gateway(steps: Sequence[Step]) -> bool:
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
