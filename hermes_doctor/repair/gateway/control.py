"""Choose the gateway control for a home: the one of its supervisor, or a background process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hermes_doctor.core.message import listed
from hermes_doctor.core.model import CannotFix, CouldNotLook
from hermes_doctor.core.system import root_parent

if TYPE_CHECKING:
    from hermes_doctor.core.model import Gateway
    from hermes_doctor.diagnosis.probes.probes import Probes
    from hermes_doctor.hermes.supervisors.find import Supervision
    from hermes_doctor.hermes.supervisors.units import Unit
    from hermes_doctor.repair.gateway.base import GatewayControl

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WSS_PROXY", "WS_PROXY", "NO_PROXY")
INSIDE = (
    "This runs inside the gateway, so a restart would cut off the current answer. Run it from your "
    "own shell."
)


_known: WeakKeyDictionary[Probes, GatewayControl] = WeakKeyDictionary()
"""Cache: asking a supervisor takes a while, and several fixes of one plan need the answer."""


def gateway_control(probes: Probes) -> GatewayControl:
    """Return the control of a home's gateway; raise CannotFix if we must not stop or start it."""
    if probes not in _known:
        _known[probes] = _of(probes)
    return _known[probes]


def _of(probes: Probes) -> GatewayControl:
    if probes.home.is_example:
        raise CannotFix("This is an example home without Hermes, so no gateway is started.")
    try:
        gateways = probes.gateway.running()
    except CouldNotLook as why:
        raise CannotFix(str(why)) from None
    runtime = probes.gateway.runtime()
    holder = runtime.lock_holder
    if not gateways and runtime.unseen:
        raise CannotFix(runtime.unseen)
    if not gateways and holder is not None:
        raise CannotFix(
            "Process {pid} holds gateway.lock, so no gateway can start. Stop that process first.",
            pid=holder,
        )
    if not gateways:
        from hermes_doctor.repair.gateway.hermes_command import refuse_copied_home

        try:
            server = probes.gateway.served_by()
        except CouldNotLook as why:
            raise CannotFix(str(why)) from None
        if server is not None:
            raise CannotFix(
                "The gateway of the root home (process {pid}) serves this profile, so a second one "
                "would answer, too. Restart the gateway of the root home.",
                pid=server.pid,
            )
        refuse_copied_home(probes)
    refuse_inside([gateway.pid for gateway in gateways])
    if len(gateways) > 1:
        raise CannotFix(
            "{number} gateways run on this home (processes {pids}). Stop all but one first.",
            number=len(gateways),
            pids=listed([str(gateway.pid) for gateway in gateways]),
        )
    _refuse_strangers(probes, gateways)
    service = _choose(probes, gateways)
    service.refuse()
    return service


def refuse_inside(pids: list[int]) -> None:
    """Refuse if we run inside the gateway: an agent must not stop it in the middle of an answer."""
    from hermes_doctor.repair.gateway.process_handle import ancestors

    if os.environ.get("_HERMES_GATEWAY") or (pids and set(pids) & set(ancestors())):
        raise CannotFix(INSIDE)


def _refuse_strangers(probes: Probes, gateways: list[Gateway]) -> None:
    """Refuse to control a home or gateway of another user, unless we are root."""
    owner = os.stat(probes.home.path).st_uid
    if root_parent.operator() not in (0, owner):
        raise CannotFix(
            "The home belongs to another user (uid {uid}). Run it as that user or with sudo.",
            uid=owner,
        )
    for gateway in gateways:
        try:
            uid = os.stat(f"/proc/{gateway.pid}").st_uid
        except OSError:
            continue
        if root_parent.operator() not in (0, uid):
            raise CannotFix(
                "Process {pid} belongs to another user (uid {uid}). Run it with sudo.",
                pid=gateway.pid,
                uid=uid,
            )


def _choose(probes: Probes, gateways: list[Gateway]) -> GatewayControl:
    try:
        supervision = probes.gateway.supervision()
    except CouldNotLook as why:
        raise CannotFix(
            "Could not find out what restarts the gateway: {reason}. Restart it yourself.",
            reason=why,
        ) from None
    running = gateways[0].pid if gateways else None
    _refuse_rivals(supervision, running)
    if supervision.owner is not None:
        if supervision.owner.silence:
            raise CannotFix(
                "{unit} cannot be controlled: {reason}. Restart it yourself.",
                unit=supervision.owner.name,
                reason=supervision.owner.silence,
            )
        return control_of_unit(probes, supervision.owner)
    if supervision.unsure:
        raise CannotFix(
            "Could not find out what restarts the gateway: {reason}. Restart it yourself.",
            reason=supervision.unsure[0],
        )
    from hermes_doctor.repair.gateway.docker import container_of

    if running is None and (held := container_of(probes.home)):
        return control_of_unit(probes, held)
    from hermes_doctor.hermes.processes.home_of import shares_namespaces
    from hermes_doctor.repair.gateway.detached import Detached

    if running is not None and not shares_namespaces(running):
        raise CannotFix(
            "Process {pid} runs in a container, and nothing here can start it again there. "
            "Restart that container.",
            pid=running,
        )
    loops = probes.health.next_start() is not None
    return Detached(
        probes.home, probes.hermes.installation(), proxies(supervision.units), in_loop=loops
    )


def _refuse_rivals(supervision: Supervision, running: int | None) -> None:
    """Refuse if two supervisors claim the gateway: if one stops it, the other starts it again."""
    others = [unit for unit in supervision.units if unit is not supervision.owner]
    busy = [unit for unit in others if unit.state in ("active", "activating")]
    if busy:
        whose = supervision.owner.name if supervision.owner else f"process {running}"
        raise CannotFix(
            "{names} run the gateway of this home at the same time. Disable all but one first.",
            names=listed([whose, *(unit.name for unit in busy)]),
        )
    ready = [unit for unit in supervision.units if unit.enabled]
    if running is None and len(ready) > 1:
        raise CannotFix(
            "{names} would each start the gateway. Disable all but one first.",
            names=listed([unit.name for unit in ready]),
        )


def proxies(units: tuple[Unit, ...]) -> dict[str, str]:
    """The proxy variables that the units of this home set for its gateway."""
    return {
        name: value
        for unit in units
        for name, value in unit.environment.items()
        if name.upper() in PROXIES
    }


def control_of_unit(probes: Probes, unit: Unit) -> GatewayControl:
    from hermes_doctor.hermes.supervisors import units as kinds

    home = probes.home
    if unit.kind in (kinds.SYSTEMD_USER, kinds.SYSTEMD_SYSTEM):
        from hermes_doctor.core.system.accounts import account
        from hermes_doctor.hermes.supervisors.units import runs_gateway, split_command
        from hermes_doctor.repair.gateway.hermes_command import names_profile, refuse_other_profile
        from hermes_doctor.repair.gateway.manager_commands import owner_of
        from hermes_doctor.repair.gateway.service_managers import SystemdManager, SystemdUnit

        if runs_gateway(unit.program) and not names_profile(split_command(unit.program)):
            folder = unit.environment.get("HOME") or owner_of(home).folder
            refuse_other_profile(home, folder, unit.name)
        user = account(unit.manager) if unit.manager is not None else None
        return SystemdUnit(home, unit.name, SystemdManager(user))
    if unit.kind == kinds.LAUNCHD:
        from hermes_doctor.repair.gateway.service_managers import LaunchAgent

        return LaunchAgent(home, unit.name, unit.path, unit.settings.get("domain"))
    if unit.kind == kinds.S6:
        from hermes_doctor.repair.gateway.service_managers import Slot

        return Slot(home, unit.name, unit.path.parent if unit.path else None)
    if unit.kind == kinds.DOCKER:
        from hermes_doctor.hermes.processes import lineage
        from hermes_doctor.hermes.supervisors import docker
        from hermes_doctor.repair.gateway.docker import Container

        if lineage.in_container():
            raise CannotFix(
                "The gateway is the main process of this container. Restart the container from "
                "outside with `docker restart`."
            )
        # By its name: if Compose recreates it before then, it has another id.
        return Container(home, unit.name.removeprefix("container "), docker.engine())
    raise CannotFix(
        "hermes-doctor cannot control {unit} ({kind}). Restart the gateway there yourself.",
        unit=unit.name,
        kind=unit.kind,
    )
