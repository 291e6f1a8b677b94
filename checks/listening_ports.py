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
    from hermes_doctor.api import Platform

_BRIDGES = ("", "node", "MainThread")
"""Names of Node.js processes, or an unreadable name: the process may be the bridge."""


@check(
    id="listening-ports",
    group="connections",
    codes=["GW-PORT-IN-USE", "PLATFORM-DEAF"],
    by_release=["PLATFORM-DEAF"],
)
def listening_ports(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every platform that waits for callers have its port?"""
    waiting = [one for one in probes.platforms() if one.port]
    bridged = any(one.name == "whatsapp" for one in probes.platforms())
    if not waiting and not bridged:
        raise Skip("no platform is set up that listens")
    gateways = probes.gateways()
    own = {
        one.local[1]
        for gateway in gateways
        for one in probes.connections(gateway.pid)
        if one.state == "LISTEN"
    }
    for platform in waiting:
        if platform.port not in own:
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
                    "the gateway ends process {holder} ({name}) when WhatsApp starts",
                    holder=holder,
                    name=name,
                ),
                subject=door.platform,
                detail=(
                    text(
                        "It listens on port {port}, which WhatsApp's bridge takes for "
                        "itself. Set platforms.whatsapp.extra.bridge_port in config.yaml "
                        "to another port, or let that process listen elsewhere, before the "
                        "gateway is started again.",
                        port=door.port,
                    )
                ),
                evidence=(
                    Evidence(door.place, f"the bridge is to listen on port {door.port}"),
                    Evidence(f"port {door.port}", f"process {holder} ({name}) listens there"),
                ),
            )
            return


def _missing(probes: Probes, platform: Platform) -> Iterator[Finding]:
    gateways = probes.gateways()
    network = gateways[0].pid if gateways else os.getpid()
    others = [one for one in probes.listeners(network) if one.local[1] == platform.port]
    claims = [(probes.claims(gateway) or {}).get(platform.name) for gateway in gateways]
    claim = next((one for one in claims if one), None)
    refused = claim is not None and (claim.error_code or "").endswith("port_in_use")
    if others or refused:
        holder = probes.socket_owner(others[0].inode) if others and others[0].inode else None
        who = f"process {holder} ({probes.command(holder)})" if holder else "another process"
        evidence = []
        if others:
            evidence.append(Evidence(f"port {platform.port}", f"{who} listens there"))
        if refused and claim:
            evidence.append(Evidence("gateway_state.json", f"{platform.name}: {claim.state}"))
        yield Finding(
            code="GW-PORT-IN-USE",
            severity=Severity.ERROR if gateways else Severity.WARNING,
            title=text(
                "port {port} of the {platform} is taken",
                port=platform.port,
                platform=platform.label,
            ),
            subject=platform.name,
            detail=(
                text("{who} has it. ", who=who)
                + ("" if gateways else "A gateway that starts now cannot. ")
            )
            + "End that process, or set another port, and restart the gateway.",
            evidence=tuple(evidence),
            since=claim.updated_at if refused and claim else None,
        )
    elif claim and claim.state == "connected":
        yield Finding(
            code="PLATFORM-DEAF",
            severity=Severity.ERROR,
            title=text(
                "{platform} is said to be connected, and nothing listens for it",
                platform=platform.label,
            ),
            subject=platform.name,
            detail="Whoever calls is refused.",
            evidence=(Evidence(f"port {platform.port}", "nobody listens"),),
            fix="restart-gateway",
            data={"platform": platform.name},
        )
