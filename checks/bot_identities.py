"""Find other gateways that use the same bot as this gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import PlatformState


@check(id="bot-identities", group="connections", codes=["TOKEN-DUP"], needs="bot")
def bot_identities(probes: Probes) -> Iterator[Finding]:
    """Is this gateway the only one that uses its bots?"""
    locked = [one for one in probes.platforms() if one.lock]
    gateways = {gateway.pid: gateway for gateway in probes.gateways()}
    holders = {one.scope: one for one in probes.bot_holders() if one.pid not in gateways}
    others = {one.scope: one for one in probes.shared_tokens() if one.pid}
    said: dict[str, PlatformState] = {}
    for gateway in gateways.values():
        said.update(probes.claims(gateway) or {})
    for platform in locked:
        holder = holders.get(platform.lock or "")
        claim = said.get(platform.name)
        refused = claim is not None and (claim.error_code or "").endswith(
            ("_lock", "lock_conflict")
        )
        other = others.get(platform.lock or "")
        pid = holder.pid if holder else other.pid if other else None
        connected = claim is not None and claim.state == "connected"
        if not refused and (not pid or (connected and not holder)):
            continue  # if ours is connected and no other one has the lock, ours answers
        evidence = []
        if holder:
            held = text("lock {lock} is held by process {pid}", lock=holder.scope, pid=holder.pid)
            evidence.append(Evidence(str(holder.path.parent), held))
        if other and other.pid:
            shares = text("process {pid} has the same {name}", pid=other.pid, name=other.variable)
            evidence.append(Evidence(probes.home.name_of(other.home), shares))
        if refused and claim:
            evidence.append(Evidence("gateway_state.json", f"{platform.name}: {claim.state}"))
        yield Finding(
            code="TOKEN-DUP",
            severity=Severity.ERROR if gateways else Severity.WARNING,
            title=(
                text(
                    "process {pid} already uses this bot on {platform}",
                    pid=pid,
                    platform=platform.label,
                )
                if pid
                else text(
                    "another gateway already uses this bot on {platform}", platform=platform.label
                )
            ),
            subject=platform.name,
            detail=(
                text(
                    "Both gateways take messages on {platform}, so users get answers from one of "
                    "them or from none.",
                    platform=platform.label,
                )
                if connected
                else text(
                    "Nobody on {platform} gets an answer from this gateway, because only one "
                    "gateway can use a bot.",
                    platform=platform.label,
                )
                if gateways
                else text(
                    "When this gateway starts, {platform} does not connect, because only one "
                    "gateway can use a bot.",
                    platform=platform.label,
                )
                if holder
                else text(
                    "Only one gateway can use a bot. If both run, users on {platform} get answers "
                    "from one of them or from none.",
                    platform=platform.label,
                )
            ),
            next=text(
                "Stop the other gateway, or remove the credentials of {platform} from one of the "
                "two homes. Then restart this gateway.",
                platform=platform.label,
            ),
            evidence=tuple(evidence),
            since=claim.updated_at if refused and claim else None,
        )
