"""Plan to install a systemd user unit for a gateway that was started by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.supervisors import scope as supervisors_scope

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.steps.base import Step
    from hermes_doctor.steps.gateway import GatewayStep
    from hermes_doctor.steps.machine import InstallService

_PASSING = ("/tmp", "/var/tmp", "/dev/shm")


def install_service(probes: Probes) -> Iterator[Step]:
    """The steps that install a user unit and move the gateway under it."""
    found = probes.supervision()
    if not found.booted and not found.units:
        # Asked before the imports below, which cost a report 40 ms: many gateways run in containers
        # and on servers without systemd, and each of their reports asks this.
        raise CannotFix(
            "systemd is not running, so no service can be installed. Start the gateway from your "
            "own supervisor."
        )
    from hermes_doctor.gateway import control
    from hermes_doctor.gateway.detached import Detached
    from hermes_doctor.gateway.handoff import Handoff
    from hermes_doctor.gateway.hermes_command import refuse_other_profile, unit_name
    from hermes_doctor.gateway.manager_commands import owner_of
    from hermes_doctor.gateway.systemd import SystemdUnit, manager_of
    from hermes_doctor.steps.gateway import GatewayStep
    from hermes_doctor.steps.machine import InstallService

    alone = control.gateway_control(probes)
    if not isinstance(alone, Detached) or found.units:
        raise CannotFix(
            text("The gateway runs {control} already. Nothing to do.", control=alone.describe())
        )
    scope = supervisors_scope.of_user(owner_of(probes.home).uid)
    if scope is None:
        raise CannotFix(
            "The owner of the home has no account on this machine. Correct the owner first."
        )
    refuse_temporary_home(probes.home.path)
    folder = str(scope.user)
    refuse_other_profile(probes.home, folder, "The service that Hermes installs")
    name = unit_name(probes.home, folder)
    taken = next((one for one in found.others if one.name == name), None)
    if taken is not None:
        raise CannotFix(
            text(
                "Hermes would overwrite {unit}, the service of {home}. Install a service yourself.",
                unit=name,
                home=taken.home,
            )
        )
    act = InstallService(probes.home, name)
    act.refuse()
    act.require_installer()
    unit = SystemdUnit(probes.home, name, manager_of(probes.home, system=False))
    yield act
    why = "from now on systemd restarts it; variables of a shell no longer apply"
    yield GatewayStep(Handoff(alone, unit, act.path), restart=True, why=why, expected=True)


def restart_without_unit(probes: Probes, action: InstallService) -> GatewayStep:
    """The gateway step for removing the unit: the gateway is moved to a background process."""
    from hermes_doctor.gateway.detached import Detached
    from hermes_doctor.gateway.handoff import Handoff
    from hermes_doctor.gateway.systemd import SystemdUnit
    from hermes_doctor.steps.gateway import GatewayStep

    alone = Detached(probes.home, probes.installation())
    unit = SystemdUnit(probes.home, action.unit, action.manager)
    why = "its service is removed"
    return GatewayStep(Handoff(alone, unit, action.path), restart=True, why=why)


def refuse_temporary_home(home: Path) -> None:
    """Refuse a home in a temporary folder: after the next boot its service would only fail."""
    import tempfile

    for place in (*_PASSING, tempfile.gettempdir()):
        if home.is_relative_to(os.path.realpath(place)):
            raise CannotFix(
                text(
                    "The home is in the temporary folder {folder}. Move it before you install a "
                    "service.",
                    folder=place,
                )
            )
