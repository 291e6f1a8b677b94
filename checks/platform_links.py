"""Check that connected platforms have a live connection, and that users there get answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import is_unset
from hermes_doctor.api.settings import Platform
from hermes_doctor.api.tools import clock, count, duration, listed

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


_SHOWN = 3


@check(id="no-platform", group="platforms", codes=["PLATFORM-NONE"], by_release=True)
def no_platform(probes: Probes) -> Iterator[Finding]:
    """Can people still reach a bot that they used?"""
    if probes.settings.platforms():
        return
    if unreadable := probes.settings.effective().unreadable:
        raise CouldNotLook(unreadable[0])
    if probes.gateway.served_by() is not None:
        raise Skip("the gateway of the root home serves this profile")
    used = probes.stores.earlier_platforms()
    if not used:
        raise Skip("no platform was ever used here")
    variables = [name for earlier_platform in used for name in earlier_platform.variables]
    sure = is_unset(probes, *variables)
    labels = listed([one.label for one in used[:_SHOWN]])
    yield Finding(
        code="PLATFORM-NONE",
        severity=Severity.ERROR if sure else Severity.WARNING,
        title="no platform is switched on any more",
        subject="platforms",
        detail=text(
            "Nobody can reach the bot. It was used on {platforms}, but no token for it is set.",
            platforms=labels,
        )
        if sure
        else text(
            "It was used on {platforms}. Nobody can reach the bot unless a service sets the token.",
            platforms=labels,
        ),
        evidence=tuple(Evidence(one.where, f"{one.label}: {one.what}") for one in used[:_SHOWN]),
        next=text(
            "Set {variables} in .env again, or mute this if you stopped using the bot.",
            variables=listed(list(used[0].variables)),
        ),
    )


_DAY = 86_400.0
_SHORTEST = 3 * 3600.0
"""A shorter silence says nothing."""
_LATEST = 3600.0
"""The log must have lines from the last hour, so the gateway was working."""
_DAYS, _MOST_DAYS = 3, 7
_FEWEST = 3
"""Messages that came in at the same time on each of the days before."""


@check(id="quiet-platforms", group="connections", codes=["PLATFORM-DEAF"], needs="gateway log")
def quiet_platforms(probes: Probes) -> Iterator[Finding]:
    """Do users still write on every platform at their usual times?"""
    begin = probes.logs.traffic_since()
    assert begin is not None
    if time.time() - begin < _DAYS * _DAY:
        raise Skip("the log does not cover enough days to compare")
    traffic = probes.logs.traffic()
    first, last = traffic.covers or (begin, begin)
    if last - first < _DAYS * _DAY or not 0 <= time.time() - last < _LATEST:
        raise Skip("the log does not cover enough days to compare")
    for platform in probes.settings.platforms():
        times = traffic.inbound.get(platform.name, ())
        if times and last - times[-1] >= _SHORTEST:
            usual = _usual(times, times[-1], last, first)
            if _is_unusual(usual, last):
                yield _finding(platform, times[-1], last, usual)


def _usual(times: tuple[float, ...], begin: float, end: float, first: float) -> list[int]:
    """Return how many messages came in at the same time of day on each of the days before."""
    found = []
    for day in range(1, _MOST_DAYS + 1):
        since, until = begin - day * _DAY, end - day * _DAY
        if since < first:
            break
        found.append(sum(since < at <= until for at in times))
    return found


def _is_unusual(usual: list[int], last: float) -> bool:
    """Tell whether silence is unusual; weekdays say nothing about a weekend, and vice versa."""
    days = (last - day * _DAY for day in range(1, len(usual) + 1))
    known = any(_is_weekend(day) == _is_weekend(last) for day in days)
    return known and len(usual) >= _DAYS and min(usual) >= _FEWEST


def _is_weekend(at: float) -> bool:
    return time.localtime(at).tm_wday >= 5


def _finding(platform: Platform, since: float, until: float, usual: list[int]) -> Finding:
    begin = datetime.fromtimestamp(since, UTC)
    return Finding(
        code="PLATFORM-DEAF",
        severity=Severity.WARNING,
        title=text("{platform} has been unusually quiet", platform=platform.label),
        subject=platform.name,
        detail=text(
            "Users of {platform} may get no answer. The gateway works and reports no "
            "error; the connection may be dead.",
            platform=platform.label,
        ),
        evidence=(
            Evidence(
                "logs/gateway.log",
                text(
                    "no message for {period} since {time}",
                    period=duration(until - since),
                    time=clock(begin),
                ),
            ),
            Evidence(
                "logs/gateway.log",
                text(
                    "at least {messages} at this time on each of the {days} before",
                    messages=count(min(usual), "message"),
                    days=count(len(usual), "day"),
                ),
            ),
        ),
        since=begin,
        next=text(
            "Send the bot a message on {platform}; if it does not answer, restart the gateway.",
            platform=platform.label,
        ),
        data={"platform": platform.name},
    )
