"""Check with `--network` that the gateway's platforms and model providers can be reached."""

from __future__ import annotations

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
    listed,
    sentences,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Reached

_STAGES = {
    "name": (
        "NET-DNS",
        "The bot gets no connection, because the host name cannot be resolved.",
        "Check the DNS server of this machine (/etc/resolv.conf) and its network.",
    ),
    "connection": (
        "NET-TCP",
        "The bot gets no connection, because the host does not accept one.",
        "Check the firewall of this machine, and whether it needs a proxy.",
    ),
    "certificate": (
        "NET-TLS",
        "The bot gets no connection, because the encryption (TLS) fails.",
        "Check the clock and the CA certificates of this machine.",
    ),
    "proxy": (
        "NET-PROXY",
        "The bot gets no connection, because the proxy does not connect to the host.",
        "Check the address of the proxy, and that it runs and allows this host.",
    ),
}
"""Code, what fails and the operator's step for each stage of a connection."""
_CODES = ["NET-DNS", "NET-TCP", "NET-TLS", "NET-PROXY"]


@check(id="network-reach", group="connections", codes=_CODES, limit=12, needs="network")
def network_reach(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can every platform and model provider be reached?"""
    found = probes.reach()
    if not found:
        raise Skip("no platform and no known provider is set up")
    failed: dict[tuple[str, str], list[Reached]] = {}
    for one in found:
        if one.failed:
            failed.setdefault((one.failed, one.why), []).append(one)
    for (stage, _), some in failed.items():
        yield _finding(stage, some, len(found))
    for doubt in probes.settings().unreadable:
        yield CouldNotLook(doubt)


def _finding(stage: str, some: list[Reached], every: int) -> Finding:
    code, cause, step = _STAGES[stage]
    names = sorted({one.target.what for one in some})
    proxy = some[0].target.proxy
    route = (
        text("Tried through {proxy} ({variable}).", proxy=proxy.name, variable=proxy.variable)
        if proxy
        else "Tried without a proxy."
    )
    return Finding(
        code=code,
        severity=Severity.ERROR,
        title=(
            "no platform and no provider can be reached"
            if len(some) == every > 1
            else text("{hosts} cannot be reached", hosts=listed(names, 3))
        ),
        subject=", ".join(names),
        detail=sentences(cause, route),
        evidence=tuple(
            Evidence(one.target.endpoint.name, f"{one.why} ({one.seconds:.1f} s)")
            for one in some[:8]
        ),
        next=step,
    )
