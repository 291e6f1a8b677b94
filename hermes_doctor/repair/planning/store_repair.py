"""Plan the repair of a store, with a restart if the running gateway would overwrite it."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.diagnosis.probes.probes import Probes
from hermes_doctor.diagnosis.step import Step
from hermes_doctor.hermes.stores.best_repair import Repair
from hermes_doctor.hermes.stores.store_file import StoreFile
from hermes_doctor.repair.gateway import control
from hermes_doctor.repair.steps.files import ReplaceFile
from hermes_doctor.repair.steps.gateway import GatewayStep


def repair_store(probes: Probes, file: StoreFile, repair: Repair) -> Iterator[Step]:
    """Make the steps that replace a store by its repaired content."""
    yield from replace_store(probes, file, repair.data, repair.why, repair.lines)


def replace_store(
    probes: Probes, file: StoreFile, data: bytes, why: str, lines: tuple[str, ...]
) -> Iterator[Step]:
    """Make the steps that replace a store; a gateway that reads it only at start is restarted."""
    yield ReplaceFile(
        file.path, data, why=why, expect=file.snapshot, before=file.data, entries=lines
    )
    if file.store.read == "start" and probes.gateway.running():
        reason = f"it would overwrite {file.path.name} with what it read at its start"
        yield GatewayStep(control.gateway_control(probes), restart=True, why=reason)


def entry_lines(file: StoreFile, values: object, changed: str) -> tuple[str, ...]:
    """Lines for the plan that show how each entry of a sound store changes."""
    from hermes_doctor.hermes.stores.entries import difference, entries_by_name

    before, after = entries_by_name(file.values, file.store), entries_by_name(values, file.store)
    head = f"{file.path.name}, {file.store.holds}:"
    return head, *difference(before, after, (), file.store, changed)
