"""Check that some users may talk to the bot on each platform, but not everyone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Entrance


@check(id="who-may-talk", group="access", codes=["AUTHZ-NO-LISTS", "AUTHZ-OPEN"], by_release=True)
def who_may_talk(probes: Probes) -> Iterator[Finding]:
    """Is the bot there for some people, and not for everybody?"""
    doors = probes.doors() if probes.platforms() else []
    if not doors:
        raise Skip("no platform is set up that asks who somebody is")
    paired = probes.pairing().approved
    for door in doors:
        if not (door.open or door.unasked) and not _anybody(door) and not paired.get(door.name):
            yield _nobody(door)
    yield from _open(probes, doors)


def _anybody(door: Entrance) -> bool:
    """Return whether any user gets in without being paired."""
    return bool(door.listed or door.elsewhere or door.policed is not None)


def _nobody(door: Entrance) -> Finding:
    waiting = door.invites
    return Finding(
        code="AUTHZ-NO-LISTS",
        severity=Severity.INFO if waiting else Severity.WARNING,
        title=(
            text("nobody is let in on {door} yet: who writes gets a pairing code", door=door.label)
            if waiting
            else text("nobody can talk to the bot on {door}", door=door.label)
        ),
        subject=door.name,
        detail=(
            (
                "Approve the code within an hour"
                if waiting
                else "No list names anybody, nobody is paired, and strangers get no code"
            )
            + text(
                "{value} put your id into .env: {variable}=ID",
                value=", or" if waiting else ":",
                variable=door.variable,
            )
        ),
        evidence=(Evidence(".env", f"{door.variable} is not set"),),
    )


def _open(probes: Probes, doors: list[Entrance]) -> Iterator[Finding]:
    """Report once for each setting that opens platforms to everyone."""
    sandboxed = probes.is_sandboxed()
    found: dict[str, list[Entrance]] = {}
    for door in doors:
        if door.open:
            found.setdefault(f"{door.open.name}\n{door.open.place}", []).append(door)
        elif door.unasked:
            found.setdefault(f"{door.name}\n", []).append(door)
    for key, same in found.items():
        name, _, place = key.partition("\n")
        labels = ", ".join(door.label for door in same)
        meant = bool(place)
        yield Finding(
            code="AUTHZ-OPEN",
            severity=Severity.INFO if sandboxed and meant else Severity.WARNING,
            title=text("anybody may use the bot on {labels}", labels=labels)
            + ("" if sandboxed else ", and its commands run on this machine"),
            subject=name,
            detail=(
                text(
                    "{name} says so. If that is not meant, take it out and list ids "
                    "instead: {variable}=ID,ID",
                    name=name,
                    variable=same[0].variable,
                )
                if meant
                else text(
                    "Hermes 0.16 lets everybody in where no list is set. Update it, or "
                    "put the ids that may into .env: {variable}=ID,ID",
                    variable=same[0].variable,
                )
            )
            + ("" if sandboxed else ". Whoever writes can have any command run: set a sandbox")
            + ("" if sandboxed else " as `terminal.backend` in config.yaml"),
            evidence=(
                Evidence(place, f"{name} lets anybody in")
                if meant
                else Evidence(".env", f"{same[0].variable} is not set"),
            ),
        )
