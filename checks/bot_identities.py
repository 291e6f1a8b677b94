"""Find other gateways that use the same bot as this gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import PlatformState


@check(id="bot-identities", group="connections", codes=["TOKEN-DUP"])
def bot_identities(probes: Probes) -> Iterator[Finding]:
    """Is this gateway the only one that uses its bots?"""
    locked = [one for one in probes.platforms() if one.lock]
    if not locked:
        raise Skip("no platform is set up that has a bot of its own")
    gateways = {gateway.pid: gateway for gateway in probes.gateways()}
    holders = {one.scope: one for one in probes.bot_holders() if one.pid not in gateways}
    said: dict[str, PlatformState] = {}
    for gateway in gateways.values():
        said.update(probes.claims(gateway) or {})
    for platform in locked:
        holder = holders.get(platform.lock or "")
        claim = said.get(platform.name)
        refused = claim is not None and (claim.error_code or "").endswith(
            ("_lock", "lock_conflict")
        )
        if not holder and not refused:
            continue
        who = f"process {holder.pid}" if holder else "another gateway"
        evidence = []
        if holder:
            evidence.append(Evidence(str(holder.path.parent), f"{holder.scope}: {who}"))
        if refused and claim:
            evidence.append(Evidence("gateway_state.json", f"{platform.name}: {claim.state}"))
        yield Finding(
            code="TOKEN-DUP",
            severity=Severity.ERROR if gateways else Severity.WARNING,
            title=text(
                "{who} already uses the {platform} bot of this home",
                who=who,
                platform=platform.label,
            ),
            subject=platform.name,
            detail=(
                "Two gateways must not use one bot. Take its token out of the home that should "
                "not have it, or stop that gateway, and restart this one."
            ),
            evidence=tuple(evidence),
            since=claim.updated_at if refused and claim else None,
        )
