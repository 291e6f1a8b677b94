"""Check that the ports on which platforms listen are open and not taken by another process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    doors,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Connection, Platform

_BRIDGES = ("", "node", "MainThread")
"""Names of Node.js processes, or an unreadable name: the process may be the bridge."""


@check(
    id="listening-ports",
    group="connections",
    codes=["GW-PORT-IN-USE", "PLATFORM-DEAF"],
    by_release=["PLATFORM-DEAF"],
    needs="platform",
)
def listening_ports(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every platform that listens have its port?"""
    waiting = [one for one in probes.platforms() if one.port]
    bridged = any(one.name == "whatsapp" for one in probes.platforms())
    if not waiting and not bridged:
        raise Skip("no platform that listens is set up")
    gateways = probes.gateways()
    own = {
        one.local[1]
        for gateway in gateways
        for one in probes.connections(gateway.pid)
        if one.state == "LISTEN"
    }
    for platform in waiting:
        if platform.port in own:
            continue
        if not gateways and probes.runtime().unseen and _taken(probes, platform):
            yield CouldNotLook(
                text(
                    "port {port} of {platform} is in use, perhaps by the gateway of this home, "
                    "which may run where it cannot be seen",
                    port=platform.port,
                    platform=platform.label,
                )
            )
            continue
        yield from _missing(probes, platform)
    if bridged:
        yield from _bridge(probes)


def _bridge(probes: Probes) -> Iterator[Finding]:
    """Report a process on the WhatsApp bridge's port: Hermes kills it to start the bridge."""
    door = next((d for d in doors(probes.resolved().world) if d.platform == "whatsapp"), None)
    gateways = probes.gateways()
    network = gateways[0].pid if gateways else os.getpid()
    for one in probes.listeners(network) if door else ():
        holder = probes.socket_owner(one.inode) if door and one.local[1] == door.port else None
        name = probes.command(holder) if holder else ""
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
    gateways = probes.gateways()
    network = gateways[0].pid if gateways else os.getpid()
    return [one for one in probes.listeners(network) if one.local[1] == platform.port]


def _missing(probes: Probes, platform: Platform) -> Iterator[Finding]:
    gateways = probes.gateways()
    others = _taken(probes, platform)
    claims = [(probes.claims(gateway) or {}).get(platform.name) for gateway in gateways]
    claim = next((one for one in claims if one), None)
    refused = claim is not None and (claim.error_code or "").endswith("port_in_use")
    if others or refused:
        holder = probes.socket_owner(others[0].inode) if others and others[0].inode else None
        who = f"process {holder} ({probes.command(holder)})" if holder else "another process"
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
    home = next((one.home for one in probes.other_gateways() if one.pid == holder), None)
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
