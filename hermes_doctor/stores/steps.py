"""A repair of a store as steps of a plan, with the gateway down where it would write over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.steps import GatewayStep, ReplaceFile, Step

if TYPE_CHECKING:
    from hermes_doctor.probes import Probes
    from hermes_doctor.probes.stores import StoreFile
    from hermes_doctor.stores.repairing import Repair


def store_steps(probes: Probes, file: StoreFile, repair: Repair) -> Iterator[Step]:
    """Replace the file; a gateway that reads it only when it starts is down meanwhile."""
    from hermes_doctor import services

    yield ReplaceFile(
        repair.path,
        repair.data,
        why=repair.why,
        expect=repair.expect,
        before=repair.before,
        entries=repair.lines,
    )
    if file.store.read == "start" and probes.gateways():
        why = f"it reads {file.path.name} when it starts, and would write its own over it"
        yield GatewayStep(services.of(probes), restart=True, why=why)
