"""Check that no other gateway uses the bots of this home."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.gateway import PlatformState


@check(id="shared-tokens", group="access", codes=["TOKEN-DUP"], needs="bot")
def shared_tokens(probes: Probes) -> Iterator[Finding]:
    """Does every home use its own bots?"""
    locked = {one.lock: one for one in probes.settings.platforms() if one.lock}
    for shared_bot in probes.settings.shared_bots():
        platform = locked.get(shared_bot.scope)
        if platform is None or shared_bot.pid:  # `bot-identities` reports running gateways
            continue
        other = probes.home.name_of(shared_bot.home)
        yield Finding(
            code="TOKEN-DUP",
            severity=Severity.WARNING,
            title=text(
                "{home} uses the same bot on {platform}", home=other, platform=platform.label
            ),
            subject=f"{platform.name} {shared_bot.home.name}",
            detail=text(
                "Only one gateway can use a bot. If both run, the later one does not connect to "
                "{platform}, so it answers nobody there."
                if shared_bot.ran
                else "Only one gateway can use a bot. No file there shows that a gateway has "
                "run; if both run, one answers nobody on {platform}.",
                platform=platform.label,
            ),
            evidence=(
                Evidence(".env", shared_bot.variable),
                Evidence(
                    f"{other}/.env", text("{name} has the same value", name=shared_bot.variable)
                ),
            ),
            next=text(
                "Remove {name} from the .env of the home that should not use this bot.",
                name=shared_bot.variable,
            ),
        )


@check(id="bot-identities", group="connections", codes=["TOKEN-DUP"], needs="bot")
def bot_identities(probes: Probes) -> Iterator[Finding]:
    """Is this gateway the only one that uses its bots?"""
    locked = [one for one in probes.settings.platforms() if one.lock]
    gateways = {gateway.pid: gateway for gateway in probes.gateway.running()}
    holders = {
        bot_holder.scope: bot_holder
        for bot_holder in probes.settings.bot_holders()
        if bot_holder.pid not in gateways
    }
    others = {
        shared_bot.scope: shared_bot
        for shared_bot in probes.settings.shared_bots()
        if shared_bot.pid
    }
    said: dict[str, PlatformState] = {}
    for gateway in gateways.values():
        said.update(probes.gateway.claims(gateway) or {})
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
