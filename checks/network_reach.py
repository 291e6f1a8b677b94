"""Check with `--network` that the gateway's platforms and model providers can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Reached

_STAGES = {
    "name": ("NET-DNS", "the name cannot be resolved"),
    "connection": ("NET-TCP", "no connection can be made"),
    "certificate": ("NET-TLS", "the encryption cannot be set up"),
    "proxy": ("NET-PROXY", "the proxy does not lead there"),
}
_CODES = ["NET-DNS", "NET-TCP", "NET-TLS", "NET-PROXY"]


@check(id="network-reach", group="connections", codes=_CODES, limit=12)
def network_reach(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Can every platform and every model provider be reached from here?"""
    if not probes.network:
        raise Skip("the network is asked only with --network")
    found = probes.reach()
    if not found:
        raise Skip("no platform and no known provider is set up")
    failed: dict[tuple[str, str], list[Reached]] = {}
    for one in found:
        if one.failed:
            failed.setdefault((one.failed, one.why), []).append(one)
    for (stage, why), some in failed.items():
        yield _finding(stage, why, some, len(found))
    for doubt in probes.settings().unreadable:
        yield CouldNotLook(doubt)


def _finding(stage: str, why: str, some: list[Reached], every: int) -> Finding:
    code, words = _STAGES[stage]
    names = sorted({one.target.what for one in some})
    whom = "anything" if len(some) == every > 1 else ", ".join(names)
    proxy = some[0].target.proxy
    through = f"through {proxy.name} ({proxy.variable})" if proxy else "without a proxy"
    return Finding(
        code=code,
        severity=Severity.ERROR,
        title=text("{whom} cannot be reached: {why}", whom=whom, why=why),
        subject=", ".join(names),
        detail=text("{capitalize}, {through}.", capitalize=words.capitalize(), through=through),
        evidence=tuple(
            Evidence(one.target.endpoint.name, f"{one.failed}: {one.why} ({one.seconds:.1f} s)")
            for one in some[:8]
        ),
    )
