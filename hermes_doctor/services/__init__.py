"""Who stops and starts the gateway of a home: whatever owns it, and nothing by its name alone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hermes_doctor.model import CannotFix, CouldNotLook

if TYPE_CHECKING:
    from hermes_doctor.model import Gateway
    from hermes_doctor.probes import Probes
    from hermes_doctor.probes.supervision import Supervision, Unit
    from hermes_doctor.services.owned import Owned

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WSS_PROXY", "WS_PROXY", "NO_PROXY")
INSIDE = (
    "this runs inside the gateway that would be stopped, which would cut off the answer in the "
    "middle: run it from a shell of your own"
)


def of(probes: Probes) -> Owned:
    """Whatever owns the gateway of this home; CannotFix where that is not for us to steer."""
    try:
        gateways = probes.gateways()
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    refuse_inside([gateway.pid for gateway in gateways])
    if len(gateways) > 1:
        listed = " and ".join(str(gateway.pid) for gateway in gateways)
        raise CannotFix(
            f"{len(gateways)} gateways run on this home (processes {listed}), so it is not clear "
            f"which one is meant: end the one that is too much first"
        )
    _refuse_strangers(probes, gateways)
    service = _choose(probes, gateways)
    service.refuse()
    return service


gateway_service = of
"""The name under which fixes know it."""


def refuse_inside(pids: list[int]) -> None:
    """An agent must not stop the gateway that it answers through, in the middle of the answer."""
    from hermes_doctor.services.process import ancestors

    if os.environ.get("_HERMES_GATEWAY") or (pids and set(pids) & set(ancestors())):
        raise CannotFix(INSIDE)


def _refuse_strangers(probes: Probes, gateways: list[Gateway]) -> None:
    """Another user's gateway is for that user, or root, to steer."""
    owner = os.stat(probes.home.path).st_uid
    if os.geteuid() not in (0, owner):
        raise CannotFix(f"the home belongs to uid {owner}: run it as that user, or with sudo")
    for gateway in gateways:
        try:
            uid = os.stat(f"/proc/{gateway.pid}").st_uid
        except OSError:
            continue
        if os.geteuid() not in (0, uid):
            raise CannotFix(f"process {gateway.pid} belongs to uid {uid}: run it with sudo")


def _choose(probes: Probes, gateways: list[Gateway]) -> Owned:
    try:
        found = probes.supervision()
    except CouldNotLook as why:
        raise CannotFix(f"who looks after the gateway cannot be told: {why}") from None
    unit = found.owner
    if unit is None:
        return _nobodys(probes, found)
    running = gateways[0].pid if gateways else None
    rivals = [other for other in found.units if other is not unit and other.state == "active"]
    if rivals:
        names = " and ".join(one.name for one in (unit, *rivals))
        raise CannotFix(f"{names} all run a gateway of this home: switch all but one off first")
    if running is not None and unit.pid not in (None, running) and unit.state == "active":
        raise CannotFix(
            f"process {running} is the gateway, but {unit.name} runs process {unit.pid}: it is "
            f"not clear which one is meant"
        )
    return of_unit(probes, unit)


def _nobodys(probes: Probes, found: Supervision) -> Owned:
    from hermes_doctor.services.detached import Detached

    if found.unsure:
        raise CannotFix(f"who looks after the gateway cannot be told: {found.unsure[0]}")
    if len(found.units) > 1:
        names = " and ".join(unit.name for unit in found.units)
        raise CannotFix(f"{names} could each run it, and it is not clear which one should")
    return Detached(probes.home, probes.installation(), proxies(found.units))


def proxies(units: tuple[Unit, ...]) -> dict[str, str]:
    """The proxies that a unit of this home would give its gateway."""
    return {
        name: value
        for unit in units
        for name, value in unit.environment.items()
        if name.upper() in PROXIES
    }


def of_unit(probes: Probes, unit: Unit) -> Owned:
    """The service of one definition."""
    from hermes_doctor.probes import supervision as kinds

    home = probes.home
    if unit.kind in (kinds.SYSTEMD_USER, kinds.SYSTEMD_SYSTEM):
        from hermes_doctor.services.commands import account
        from hermes_doctor.services.systemd import Manager, SystemdUnit

        user = None if unit.kind == kinds.SYSTEMD_SYSTEM else account(_manager(probes, unit))
        return SystemdUnit(home, unit.name, Manager(user))
    if unit.kind == kinds.LAUNCHD:
        from hermes_doctor.services.launchd import LaunchAgent

        return LaunchAgent(home, unit.name, unit.path, unit.settings.get("domain"))
    if unit.kind == kinds.S6:
        from hermes_doctor.services.s6 import Slot

        return Slot(home, unit.name, unit.path)
    if unit.kind == kinds.DOCKER:
        from hermes_doctor.services.docker import Container

        return Container(home, unit.name)
    raise CannotFix(f"it belongs to {unit.name} ({unit.kind}), which this tool cannot steer")


def _manager(probes: Probes, unit: Unit) -> int:
    """The user whose systemd runs it."""
    uid = getattr(unit, "manager", None)
    return uid if uid is not None else os.stat(probes.home.path).st_uid
