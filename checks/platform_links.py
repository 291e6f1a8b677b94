"""Check in the kernel's socket tables that each connected platform has a live connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Connection, Gateway, Link

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


@check(id="platform-links", group="connections", codes=_CODES, limit=9)
def platform_links(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every platform that is said to be connected have a live connection?"""
    gateways = probes.gateways()
    if not gateways:
        raise Skip("no gateway is seen to run")
    for gateway in gateways:
        try:
            yield from _look(probes, gateway)
        except CouldNotLook as doubt:
            yield doubt


def _look(probes: Probes, gateway: Gateway) -> Iterator[Finding]:
    found = probes.connections(gateway.pid)
    yield from _pile(probes, gateway, found)
    claims = probes.claims(gateway) or {}
    held = frozenset(name for name, said in claims.items() if said.state == "connected")
    for link in probes.links(gateway.pid, held) if held else ():
        if link.platform.name not in held:
            continue
        if link.how is None:
            yield _deaf(gateway, link, found)
        elif dead := link.dead_for():
            yield _half_open(gateway, link, *dead)
        elif not link.sure:
            yield _likely(gateway, link)


def _deaf(gateway: Gateway, link: Link, found: list[Connection]) -> Finding:
    label = link.platform.label
    trying = f"; {link.trying} are being tried" if link.trying else ""
    return Finding(
        code=_DEAF.get(link.platform.name, "PLATFORM-DEAF"),
        severity=Severity.ERROR,
        title=text("{label} is said to be connected, and there is no connection", label=label),
        subject=link.platform.name,
        detail=text(
            "No message comes in from {label}, although nothing reports a fault.", label=label
        ),
        evidence=(
            Evidence("gateway_state.json", "connected"),
            Evidence(_where(gateway), f"{_counts(found)}; none to {label}{trying}"),
        ),
        fix="restart-gateway",
        data={"pid": gateway.pid, "platform": link.platform.name},
    )


def _half_open(gateway: Gateway, link: Link, seconds: float, how: str) -> Finding:
    label = link.platform.label
    one = link.connections[0]
    return Finding(
        code="NET-SLEEP-WAKE",
        severity=Severity.ERROR if link.sure else Severity.WARNING,
        title=text("the connection to {label} is dead, and neither side has noticed", label=label),
        subject=link.platform.name,
        detail=(
            "That is what a machine that slept, a changed network or a router that forgot the "
            "connection leaves behind. Until the gateway is restarted no message comes in."
        ),
        evidence=(
            Evidence(_where(gateway), f"{_place(one)} ESTABLISHED: {how} for {_time(seconds)}"),
        ),
        since=datetime.now(UTC) - timedelta(seconds=seconds),
        fix="restart-gateway",
        data={"pid": gateway.pid, "platform": link.platform.name},
    )


def _likely(gateway: Gateway, link: Link) -> Finding:
    label = link.platform.label
    places = ", ".join(sorted({_place(one) for one in link.connections})[:3])
    if link.how == "elsewhere":
        title = f"{label} is connected to an address outside the networks that are known for it"
        detail = "New servers, a tunnel, or a connection that is not its own. "
    else:
        title = f"{label} is most likely connected"
        detail = "There is a connection that can only be its own, or a model provider's. "
    return Finding(
        code="PLATFORM-LIKELY",
        severity=Severity.INFO,
        title=title,
        subject=link.platform.name,
        detail=text(
            "{detail}`hermes-doctor check --network` asks for its addresses and makes sure.",
            detail=detail,
        ),
        evidence=(Evidence(_where(gateway), f"ESTABLISHED to {places}"),),
    )


def _pile(probes: Probes, gateway: Gateway, found: list[Connection]) -> Iterator[Finding]:
    """Report many connections that the other side has closed but the gateway has not."""
    waiting = [one for one in found if one.state == "CLOSE_WAIT"]
    if len(waiting) < _SOME:
        return
    telegram = any(platform.name == "telegram" for platform in probes.platforms())
    yield Finding(
        code="TG-POOL-EXHAUST" if telegram else "NET-CLOSE-WAIT",
        severity=Severity.ERROR if len(waiting) >= _MANY else Severity.WARNING,
        title=text(
            "{number} connections are closed by the other side and not by the gateway",
            number=len(waiting),
        ),
        subject="telegram" if telegram else "gateway",
        detail=(
            "Each takes up a place in a pool and a descriptor; when none is left, nothing is "
            "sent or fetched any more. A restart frees them."
        ),
        evidence=(Evidence(_where(gateway), _counts(found)),),
        fix="restart-gateway",
        data={"pid": gateway.pid},
    )


def _where(gateway: Gateway) -> str:
    return f"process {gateway.pid}"


def _place(one: Connection) -> str:
    host, port = one.remote or one.local
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _counts(found: list[Connection]) -> str:
    """Return the number of connections in each state."""
    states: dict[str, int] = {}
    for one in found:
        if one.state != "LISTEN":
            states[one.state] = states.get(one.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items())) or "none"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
