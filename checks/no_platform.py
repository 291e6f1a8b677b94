"""Check that a home whose bot people wrote to still has a platform."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    is_unset,
    listed,
    text,
)

_SHOWN = 3


@check(id="no-platform", group="platforms", codes=["PLATFORM-NONE"], by_release=True)
def no_platform(probes: Probes) -> Iterator[Finding]:
    """Can people still reach a bot that they used?"""
    if probes.platforms():
        return
    if unreadable := probes.settings().unreadable:
        raise CouldNotLook(unreadable[0])
    if probes.served_by() is not None:
        raise Skip("the gateway of the root home serves this profile")
    used = probes.earlier_platforms()
    if not used:
        raise Skip("no platform was ever used here")
    variables = [name for one in used for name in one.variables]
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
