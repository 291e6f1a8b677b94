"""Check in the kernel's socket tables that each connected platform has a live connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.tools import clock, count, duration

if TYPE_CHECKING:
    from hermes_doctor.api.gateway import Connection, Gateway, PlatformConnections

_CODES = [
    "DC-ZOMBIE",
    "FEISHU-WS-DEAD",
    "NET-CLOSE-WAIT",
    "NET-SLEEP-WAKE",
    "PLATFORM-DEAF",
    "PLATFORM-LIKELY",
    "SLACK-ZOMBIE",
    "TG-POOL-EXHAUST",
    "WX-ZOMBIE-POLL",
]
_DEAF = {
    "discord": "DC-ZOMBIE",
    "feishu": "FEISHU-WS-DEAD",
    "slack": "SLACK-ZOMBIE",
    "weixin": "WX-ZOMBIE-POLL",
}
_SOME, _MANY = 20, 100
"""Counts of connections that the other side has closed but the gateway has not."""


@check(id="platform-links", group="connections", codes=_CODES, limit=9, needs="gateway")
def platform_links(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every connected platform have a live connection?"""
    gateways = probes.gateway.running()
    for gateway in gateways:
        try:
            yield from _look(probes, gateway)
        except CouldNotLook as doubt:
            yield doubt


def _look(probes: Probes, gateway: Gateway) -> Iterator[Finding]:
    connections = probes.machine.connections(gateway.pid)
    yield from _pile(probes, gateway, connections)
    claims = probes.gateway.claims(gateway) or {}
    held = frozenset(name for name, said in claims.items() if said.state == "connected")
    for link in probes.health.links(gateway.pid, held) if held else ():
        if link.platform.name not in held:
            continue
        if link.how is None:
            yield _deaf(gateway, link, connections)
        elif dead := link.dead_for():
            yield _half_open(gateway, link, *dead)
        elif not link.sure:
            yield _likely(gateway, link)


def _deaf(gateway: Gateway, link: PlatformConnections, connections: list[Connection]) -> Finding:
    label = link.platform.label
    trying = f"; {link.trying} being opened" if link.trying else ""
    return Finding(
        code=_DEAF.get(link.platform.name, "PLATFORM-DEAF"),
        severity=Severity.ERROR,
        title=text("{platform} looks connected but has no connection", platform=label),
        subject=link.platform.name,
        detail=text(
            "Nobody on {platform} gets an answer. A restart of the gateway fixes it.",
            platform=label,
        ),
        evidence=(
            Evidence("gateway_state.json", f"{link.platform.name}: connected"),
            Evidence(_where(gateway), f"{_counts(connections)}; none to {label}{trying}"),
        ),
        fix="restart-gateway",
        data={"pid": gateway.pid, "platform": link.platform.name},
    )


def _half_open(gateway: Gateway, link: PlatformConnections, seconds: float, how: str) -> Finding:
    label = link.platform.label
    connection = link.connections[0]
    since = datetime.now(UTC) - timedelta(seconds=seconds)
    return Finding(
        code="NET-SLEEP-WAKE",
        severity=Severity.ERROR if link.sure else Severity.WARNING,
        title=text(
            "the connection of {platform} has been dead since {time}"
            if link.sure
            else "{platform} may have lost its connection at {time}",
            platform=label,
            time=clock(since),
        ),
        subject=link.platform.name,
        detail=text(
            "Nobody on {platform} gets an answer, although it looks connected. Connections often "
            "die after sleep or a network change; a restart of the gateway fixes it."
            if link.sure
            else "If so, nobody on {platform} gets an answer. Connections often die after sleep or "
            "a network change; a restart fixes it.",
            platform=label,
        ),
        evidence=(
            Evidence(
                _where(gateway), f"{_place(connection)} ESTABLISHED: {how} for {duration(seconds)}"
            ),
        ),
        since=since,
        fix="restart-gateway",
        data={"pid": gateway.pid, "platform": link.platform.name},
    )


def _likely(gateway: Gateway, link: PlatformConnections) -> Finding:
    label = link.platform.label
    places = ", ".join(sorted({_place(connection) for connection in link.connections})[:3])
    elsewhere = link.how == "elsewhere"
    return Finding(
        code="PLATFORM-LIKELY",
        severity=Severity.INFO,
        title=(
            text("{platform} is connected to an unknown address", platform=label)
            if elsewhere
            else text("{platform} is probably connected", platform=label)
        ),
        subject=link.platform.name,
        detail=(
            text(
                "The address is outside the known networks of {platform}: new servers, a tunnel, "
                "or another program's connection.",
                platform=label,
            )
            if elsewhere
            else text(
                "The connection belongs to {platform} or to a model provider.", platform=label
            )
        ),
        evidence=(Evidence(_where(gateway), f"ESTABLISHED to {places}"),),
        next="Run `hermes-doctor check --network` to be sure.",
    )


def _pile(probes: Probes, gateway: Gateway, connections: list[Connection]) -> Iterator[Finding]:
    """Report many connections that the other side has closed but the gateway has not."""
    waiting = [connection for connection in connections if connection.state == "CLOSE_WAIT"]
    if len(waiting) < _SOME:
        return
    telegram = any(platform.name == "telegram" for platform in probes.settings.platforms())
    yield Finding(
        code="TG-POOL-EXHAUST" if telegram else "NET-CLOSE-WAIT",
        severity=Severity.ERROR if len(waiting) >= _MANY else Severity.WARNING,
        title=text(
            "the gateway keeps {connections} open that are dead",
            connections=count(len(waiting), "connection"),
        ),
        subject="telegram" if telegram else "gateway",
        detail=(
            "The other side closed them. When no more can be opened, the bot cannot receive or "
            "send. A restart frees them."
        ),
        evidence=(Evidence(_where(gateway), _counts(connections)),),
        fix="restart-gateway",
        data={"pid": gateway.pid},
    )


def _where(gateway: Gateway) -> str:
    return f"process {gateway.pid}"


def _place(connection: Connection) -> str:
    host, port = connection.remote or connection.local
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _counts(connections: list[Connection]) -> str:
    """Return the number of connections in each state."""
    states: dict[str, int] = {}
    for connection in connections:
        if connection.state != "LISTEN":
            states[connection.state] = states.get(connection.state, 0) + 1
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items())) or "none"
