"""Plan to install a systemd user unit for a gateway that was started by hand."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.gateway import control
from hermes_doctor.gateway.detached import Detached
from hermes_doctor.gateway.handoff import Handoff
from hermes_doctor.gateway.hermes_command import refuse_other_profile, unit_name
from hermes_doctor.gateway.manager_commands import owner_of
from hermes_doctor.gateway.systemd import SystemdUnit, manager_of
from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.steps.base import Step
from hermes_doctor.steps.gateway import GatewayStep
from hermes_doctor.steps.machine import InstallService
from hermes_doctor.supervisors import scope as supervisors_scope

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes

_PASSING = ("/tmp", "/var/tmp", "/dev/shm")


def install_service(probes: Probes) -> Iterator[Step]:
    """The steps that install a user unit and move the gateway under it."""
    alone = control.gateway_control(probes)
    found = probes.supervision()
    if not isinstance(alone, Detached) or found.units:
        raise CannotFix(text("it has an owner already: {describe}", describe=alone.describe()))
    if not found.booted:
        raise CannotFix("systemd does not run on this machine, so there is nothing to install into")
    scope = supervisors_scope.of_user(owner_of(probes.home).uid)
    if scope is None:
        raise CannotFix("the owner of the home has no name on this machine")
    refuse_temporary_home(probes.home.path)
    folder = str(scope.user)
    refuse_other_profile(probes.home, folder, "the unit that Hermes makes")
    name = unit_name(probes.home, folder)
    taken = next((one for one in found.others if one.name == name), None)
    if taken is not None:
        raise CannotFix(
            text(
                "Hermes would write it over {name}, which is the unit of {home}",
                name=name,
                home=taken.home,
            )
        )
    act = InstallService(probes.home, name)
    unit = SystemdUnit(probes.home, name, manager_of(probes.home, system=False))
    yield act
    why = "from then on systemd starts it again; it gets what .env and the unit say, no shell's"
    yield GatewayStep(Handoff(alone, unit, act.path), restart=True, why=why, expected=True)


def restart_without_unit(probes: Probes, action: InstallService) -> GatewayStep:
    """The gateway step for removing the unit: the gateway is moved to a background process."""
    alone = Detached(probes.home, probes.installation())
    unit = SystemdUnit(probes.home, action.unit, action.manager)
    why = "the unit goes, and it shall not end with it"
    return GatewayStep(Handoff(alone, unit, action.path), restart=True, why=why)


def refuse_temporary_home(home: Path) -> None:
    """Refuse a home in a temporary folder: after the next boot its service would only fail."""
    for place in (*_PASSING, tempfile.gettempdir()):
        if home.is_relative_to(os.path.realpath(place)):
            raise CannotFix(text("the home lies in {place}, which does not last", place=place))
