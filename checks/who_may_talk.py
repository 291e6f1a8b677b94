"""Check that some users may talk to the bot on each platform, but not everyone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.tools import listed

if TYPE_CHECKING:
    from hermes_doctor.api.settings import PlatformAdmission


@check(
    id="who-may-talk",
    group="access",
    codes=["AUTHZ-NO-LISTS", "AUTHZ-OPEN"],
    by_release=True,
    needs="platform",
)
def who_may_talk(probes: Probes) -> Iterator[Finding]:
    """Can approved users write to the bot, and only they?"""
    doors = probes.settings.admissions()
    if not doors:
        raise Skip("no configured platform checks its users")
    paired = probes.stores.pairing().approved
    for door in doors:
        if not (door.open or door.unasked) and not _anybody(door) and not paired.get(door.name):
            unset = _unset(probes, door)
            yield _codes_only(door, unset) if door.invites else _nobody(door, unset)
    yield from _open(probes, doors)


def _anybody(door: PlatformAdmission) -> bool:
    """Return whether any user gets in without being paired."""
    return bool(door.listed or door.elsewhere or door.policed is not None)


def _unset(probes: Probes, door: PlatformAdmission) -> Evidence:
    """Return as evidence that the platform's allowlist is missing or empty."""
    empty = probes.settings.resolved().world.variables.get(door.variable)
    if empty is not None:
        return Evidence(empty.source.place, f"{door.variable} is empty")
    return Evidence(".env", f"{door.variable} is not set")


def _nobody(door: PlatformAdmission, unset: Evidence) -> Finding:
    """Report a platform on which the bot refuses everyone."""
    return Finding(
        code="AUTHZ-NO-LISTS",
        severity=Severity.ERROR,
        title=text("the bot refuses everyone on {platform}", platform=door.label),
        subject=door.name,
        detail=(
            "Nobody gets an answer there: no allowlist, no user approved by pairing, and no "
            "pairing codes for strangers."
        ),
        evidence=(unset,),
        next=text(
            "Write `{name}=YOUR_ID` into .env, then restart the gateway.", name=door.variable
        ),
    )


def _codes_only(door: PlatformAdmission, unset: Evidence) -> Finding:
    """Report a platform on which nobody is approved yet but everyone can ask for a code."""
    return Finding(
        code="AUTHZ-NO-LISTS",
        severity=Severity.INFO,
        title=text("no approved user on {platform} yet", platform=door.label),
        subject=door.name,
        detail="The bot answers each message with a pairing code, which is valid for 1 hour.",
        evidence=(unset,),
        next=text(
            "Write to the bot, then run `hermes pairing approve {platform} CODE`.",
            platform=door.name,
        ),
    )


def _open(probes: Probes, doors: list[PlatformAdmission]) -> Iterator[Finding]:
    """Report once for each setting that opens platforms to everyone."""
    sandboxed = probes.settings.is_sandboxed()
    found: dict[str, list[PlatformAdmission]] = {}
    for door in doors:
        if door.open:
            found.setdefault(f"{door.open.name}\n{door.open.place}", []).append(door)
        elif door.unasked:
            found.setdefault(f"{door.name}\n", []).append(door)
    for key, same in found.items():
        name, _, place = key.partition("\n")
        platforms = listed([door.label for door in same])
        meant = bool(place)
        yield Finding(
            code="AUTHZ-OPEN",
            severity=Severity.INFO if sandboxed and meant else Severity.WARNING,
            title=text("everyone can use the bot on {platforms}", platforms=platforms),
            subject=name,
            detail=(
                "Strangers use your model and your tools."
                if sandboxed
                else "Strangers can run commands on this machine."
            ),
            evidence=(
                Evidence(place, text("{name} allows everyone", name=name))
                if meant
                else Evidence(
                    ".env",
                    text(
                        "{name} is not set, and Hermes 0.16 then allows everyone",
                        name=same[0].variable,
                    ),
                ),
            ),
            next=(
                text(
                    "If you do not want this, remove {name} and set `{list}=ID,ID` in .env.",
                    name=name,
                    list=same[0].variable,
                )
                if meant
                else text("Update Hermes, or set `{list}=ID,ID` in .env.", list=same[0].variable)
            ),
        )
