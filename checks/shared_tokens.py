"""Check that no other home uses the same bot token, as after copying a profile with its .env."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text


@check(id="shared-tokens", group="access", codes=["TOKEN-DUP"], needs="bot")
def shared_tokens(probes: Probes) -> Iterator[Finding]:
    """Does every home use its own bots?"""
    locked = {one.lock: one for one in probes.platforms() if one.lock}
    for one in probes.shared_tokens():
        platform = locked.get(one.scope)
        if platform is None or one.pid:  # `bot-identities` reports running gateways
            continue
        other = probes.home.name_of(one.home)
        yield Finding(
            code="TOKEN-DUP",
            severity=Severity.WARNING,
            title=text(
                "{home} uses the same bot on {platform}", home=other, platform=platform.label
            ),
            subject=f"{platform.name} {one.home.name}",
            detail=text(
                "Only one gateway can use a bot. If both run, the later one does not connect to "
                "{platform}, so it answers nobody there."
                if one.ran
                else "Only one gateway can use a bot. No file there shows that a gateway has "
                "run; if both run, one answers nobody on {platform}.",
                platform=platform.label,
            ),
            evidence=(
                Evidence(".env", one.variable),
                Evidence(f"{other}/.env", text("{name} has the same value", name=one.variable)),
            ),
            next=text(
                "Remove {name} from the .env of the home that should not use this bot.",
                name=one.variable,
            ),
        )
