"""Plan what restarts a gateway that was started by hand: a systemd user unit, or else cron."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.message import text
from hermes_doctor.model import CannotFix
from hermes_doctor.supervisors import scope as supervisors_scope

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes
    from hermes_doctor.steps.base import Step
    from hermes_doctor.steps.gateway import GatewayStep
    from hermes_doctor.steps.machine import InstallService
    from hermes_doctor.supervisors.find import Supervision


def install_service(probes: Probes, agreed: str) -> Iterator[Step]:
    """The steps that let systemd restart the gateway, or cron where systemd does not run.

    `agreed` is the code that a watch started by cron may repair without asking.
    """
    found = probes.supervision()
    if not found.booted and not found.units:
        # Asked before the imports below, which cost a report 40 ms: many gateways run in containers
        # and on servers without systemd, and each of their reports asks this.
        if sys.platform == "darwin":
            raise CannotFix("Run `hermes gateway install`, which installs a launchd job.")
        from hermes_doctor.planning.restart_by_cron import restart_by_cron

        yield from restart_by_cron(probes, agreed)
        return
    yield from _install_unit(probes, found)


def _install_unit(probes: Probes, found: Supervision) -> Iterator[Step]:
    """The steps that install a user unit and move the gateway under it."""
    from hermes_doctor.gateway import control
    from hermes_doctor.gateway.detached import Detached
    from hermes_doctor.gateway.handoff import Handoff
    from hermes_doctor.gateway.hermes_command import refuse_other_profile, unit_name
    from hermes_doctor.gateway.manager_commands import owner_of
    from hermes_doctor.gateway.systemd import SystemdUnit, manager_of
    from hermes_doctor.schedule import temporary_home
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
    temporary_home.refuse_temporary_home(probes.home.path)
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
