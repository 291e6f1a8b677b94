"""Check that no other home uses the same bot token, as after copying a profile with its .env."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text


@check(id="shared-tokens", group="access", codes=["TOKEN-DUP"])
def shared_tokens(probes: Probes) -> Iterator[Finding]:
    """Does every home under this root have bots of its own?"""
    locked = {one.lock: one for one in probes.platforms() if one.lock}
    if not locked:
        raise Skip("no platform is set up that has a bot of its own")
    for one in probes.shared_tokens():
        platform = locked.get(one.scope)
        if platform is None:
            continue
        other = probes.home.name_of(one.home)
        yield Finding(
            code="TOKEN-DUP",
            severity=Severity.WARNING if one.ran else Severity.INFO,
            title=text(
                "the {platform} bot of this home is also that of {other}",
                platform=platform.label,
                other=other,
            ),
            subject=f"{platform.name} {one.home.name}",
            detail=(
                text(
                    "Only one gateway at a time can use a bot. Take {variable} out of "
                    "the .env of the home that should not have it.",
                    variable=one.variable,
                )
            ),
            evidence=(
                Evidence(".env", f"{one.variable} has the same value in both"),
                Evidence(f"{other}/.env", f"{one.variable}"),
            ),
        )
