"""Check that the gateway has the ports on which it listens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Home,
    Probes,
    Severity,
    Skip,
    check,
    settings,
    snapshot,
    text,
)
from hermes_doctor.api.settings import inputs_of_home, listening_ports, usual_ports

if TYPE_CHECKING:
    from hermes_doctor.api.gateway import Connection
    from hermes_doctor.api.settings import ListeningPort, Platform, SettingInputs


_MOST = 20
"""Number of other profiles that are examined."""


@check(id="port-clashes", group="platforms", codes=["PLATFORM-PORT-CLASH"], by_release=True)
def port_clashes(probes: Probes) -> Iterator[Finding]:
    """Does every platform listen on its own port?"""
    own = list(listening_ports(probes.settings.resolved().world))
    if not own:
        raise Skip("no platform that listens is set up")
    taken: dict[int, ListeningPort] = {}
    for door in own:
        other = taken.setdefault(door.port, door)
        if other is not door:
            yield _same_gateway(
                probes, other, door, {listening_port.port for listening_port in own}
            )
    if probes.home.profile or not _is_shared(probes.settings.resolved().world):
        yield from _profiles(probes, own)


def _is_shared(world: SettingInputs) -> bool:
    """Return whether one gateway serves all profiles, which then open no ports themselves."""
    gateway = world.raw.get("gateway")
    setting = gateway.get("multiplex_profiles") if isinstance(gateway, dict) else None
    setting = (
        setting or world.raw.get("multiplex_profiles") or world.getenv("GATEWAY_MULTIPLEX_PROFILES")
    )
    return bool(setting) and str(setting).lower() not in ("false", "0", "no", "off")


def _same_gateway(
    probes: Probes, first: ListeningPort, second: ListeningPort, used: set[int]
) -> Finding:
    movable = second if second.variable or second.key else first
    free = _free(probes, movable, used)
    return Finding(
        code="PLATFORM-PORT-CLASH",
        severity=Severity.ERROR,
        title=text(
            "{first} and {second} both use port {port}",
            first=first.label,
            second=second.label,
            port=first.port,
        ),
        subject=f"{first.platform} {second.platform}",
        detail=text(
            "Only the first to start gets the port; the other receives nothing. The fix sets "
            "{setting} to {port}.",
            setting=movable.variable or ".".join(_path(movable)),
            port=free,
        ),
        evidence=tuple(_evidence(listening_port) for listening_port in (first, second)),
        fix="move-port",
        data={"variable": movable.variable, "path": _path(movable), "port": free},
        next="Give the new port to every program that connects to it.",
    )


def _free(probes: Probes, door: ListeningPort, used: set[int]) -> int:
    """Return the next port that is unused and is not the default port of a platform."""
    heard = {listener.local[1] for listener in probes.machine.listeners(os.getpid())}
    busy = used | heard | usual_ports()
    return next(port for port in range(door.port + 1, 65536) if port not in busy)


def _profiles(probes: Probes, own: list[ListeningPort]) -> Iterator[Finding]:
    """Report other profiles whose gateways would listen on the same ports."""
    release = probes.settings.resolved().world.release
    for home in _beside(probes.home)[:_MOST]:
        try:
            world = inputs_of_home(home, release)
        except CouldNotLook:
            continue
        if home.profile is None and _is_shared(world):
            return
        theirs = {door.port: door for door in listening_ports(world)}
        for door in own:
            same = theirs.get(door.port)
            if same is None:
                continue
            used = snapshot(home / "gateway_state.json").kind == "file"
            who = f"profile {home.profile}" if home.profile else "the root home"
            yield Finding(
                code="PLATFORM-PORT-CLASH",
                severity=Severity.WARNING if used else Severity.INFO,
                title=text(
                    "{door} and {same} of {home} both use port {port}",
                    door=door.label,
                    same=same.label,
                    home=who,
                    port=door.port,
                ),
                subject=f"{door.platform} {home.profile or 'root'}",
                detail=(
                    "If both gateways run, only the first to start gets the port; the other "
                    "platform receives nothing."
                    if used
                    else "Their gateways cannot run at the same time with these settings."
                ),
                evidence=(_evidence(door), Evidence(who, f"{same.label}: port {same.port}")),
                fix="move-port",
                data={
                    "variable": door.variable,
                    "path": _path(door),
                    "port": _free(
                        probes, door, {*theirs, *(listening_port.port for listening_port in own)}
                    ),
                },
            )


def _beside(home: Home) -> list[Home]:
    root = Home(home.path.parent.parent) if home.profile else home
    try:
        paths = [root.path, *root.profiles()]
    except CouldNotLook:
        return []
    return [Home(path) for path in paths if path != home.path]


def _path(door: ListeningPort) -> tuple[str, ...]:
    return ("platforms", door.platform, "extra", door.key or "port")


def _evidence(door: ListeningPort) -> Evidence:
    return Evidence(door.place, f"{door.label}: port {door.port}")


_BRIDGES = ("", "node", "MainThread")
"""Names of Node.js processes, or an unreadable name: the process may be the bridge."""


@check(
    id="listening-ports",
    group="connections",
    codes=["GW-PORT-IN-USE", "PLATFORM-DEAF"],
    by_release=["PLATFORM-DEAF"],
    needs="platform",
)
def ports_of_platforms(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every platform that listens have its port?"""
    waiting = [one for one in probes.settings.platforms() if one.port]
    bridged = any(one.name == "whatsapp" for one in probes.settings.platforms())
    if not waiting and not bridged:
        raise Skip("no platform that listens is set up")
    gateways = probes.gateway.running()
    own = {
        connection.local[1]
        for gateway in gateways
        for connection in probes.machine.connections(gateway.pid)
        if connection.state == "LISTEN"
    }
    for platform in waiting:
        if platform.port in own:
            continue
        if not gateways and probes.gateway.runtime().unseen and _taken(probes, platform):
            yield CouldNotLook(
                "port {port} of {platform} is in use, perhaps by the gateway of this home, "
                "which may run where it cannot be seen",
                port=platform.port,
                platform=platform.label,
            )
            continue
        yield from _missing(probes, platform)
    if bridged:
        yield from _bridge(probes)


def _bridge(probes: Probes) -> Iterator[Finding]:
    """Report a process on the WhatsApp bridge's port: Hermes kills it to start the bridge."""
    door = next(
        (
            d
            for d in settings.listening_ports(probes.settings.resolved().world)
            if d.platform == "whatsapp"
        ),
        None,
    )
    gateways = probes.gateway.running()
    network = gateways[0].pid if gateways else os.getpid()
    for listener in probes.machine.listeners(network) if door else ():
        holder = (
            probes.machine.socket_owner(listener.inode)
            if door and listener.local[1] == door.port
            else None
        )
        name = probes.machine.command(holder) if holder else ""
        if door and holder and name not in _BRIDGES:
            yield Finding(
                code="GW-PORT-IN-USE",
                severity=Severity.WARNING,
                title=text(
                    "the next gateway start kills process {pid} ({name})", pid=holder, name=name
                ),
                subject=door.platform,
                detail=(
                    "It uses the port of the WhatsApp bridge. Hermes kills every process on that "
                    "port before it starts the bridge."
                ),
                evidence=(
                    Evidence(door.place, f"port {door.port} for the bridge"),
                    Evidence(f"port {door.port}", f"process {holder} ({name}) listens"),
                ),
                next=(
                    "Set platforms.whatsapp.extra.bridge_port in config.yaml to another port "
                    "before the next start."
                ),
            )
            return


def _taken(probes: Probes, platform: Platform) -> list[Connection]:
    """Return the sockets of others that listen on the port of a platform."""
    gateways = probes.gateway.running()
    network = gateways[0].pid if gateways else os.getpid()
    return [
        listener
        for listener in probes.machine.listeners(network)
        if listener.local[1] == platform.port
    ]


def _missing(probes: Probes, platform: Platform) -> Iterator[Finding]:
    gateways = probes.gateway.running()
    others = _taken(probes, platform)
    claims = [(probes.gateway.claims(gateway) or {}).get(platform.name) for gateway in gateways]
    claim = next((platform_state for platform_state in claims if platform_state), None)
    refused = claim is not None and (claim.error_code or "").endswith("port_in_use")
    if others or refused:
        holder = (
            probes.machine.socket_owner(others[0].inode) if others and others[0].inode else None
        )
        who = (
            f"process {holder} ({probes.machine.command(holder)})" if holder else "another process"
        )
        evidence = []
        if others:
            evidence.append(Evidence(f"port {platform.port}", f"{who} listens"))
        if refused and claim:
            evidence.append(Evidence("gateway_state.json", f"{platform.name}: {claim.state}"))
        yield Finding(
            code="GW-PORT-IN-USE",
            severity=Severity.ERROR if gateways else Severity.WARNING,
            title=text(
                "{platform}: port {port} is in use", port=platform.port, platform=platform.label
            ),
            subject=platform.name,
            detail=(
                text(
                    "Nobody on {platform} gets an answer, because it receives nothing.",
                    platform=platform.label,
                )
                if gateways
                else text(
                    "A gateway that starts now cannot open it, so {platform} receives nothing.",
                    platform=platform.label,
                )
            ),
            evidence=tuple(evidence),
            since=claim.updated_at if refused and claim else None,
            next=_step(probes, platform, holder),
        )
    elif claim and claim.state == "connected":
        yield Finding(
            code="PLATFORM-DEAF",
            severity=Severity.ERROR,
            title=text("{platform} looks connected but nothing listens", platform=platform.label),
            subject=platform.name,
            detail="Every incoming message is refused. A restart of the gateway fixes it.",
            evidence=(
                Evidence("gateway_state.json", f"{platform.name}: connected"),
                Evidence(f"port {platform.port}", "not open"),
            ),
            fix="restart-gateway",
            data={"platform": platform.name},
        )


def _step(probes: Probes, platform: Platform, holder: int | None) -> str:
    """Return what to do about a taken port, without harm to a gateway that works."""
    home = next((other.home for other in probes.gateway.others() if other.pid == holder), None)
    if holder and home:
        return text(
            "Set another port for {platform} in this home; process {pid} is the gateway of {home}.",
            platform=platform.label,
            pid=holder,
            home=home,
        )
    if holder:
        return "End the other process or set another port, then restart the gateway."
    return (
        "Find the process with `sudo ss -ltnp`. If it is not one of your gateways, end it; else "
        "set another port. Then restart the gateway."
    )
