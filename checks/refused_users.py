"""Check for users whom the bot refused, and whether the operator meant to let them in."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    ago,
    check,
    count,
    is_id,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Entrance, Refusal

_SHOWN = 12
"""There may be hundreds of strangers."""
_TRIES_AGAIN = 2
"""Who sets up a bot writes again if it does not answer; one message says nothing."""
_FEW = 3
"""A bot that more strangers have found is public; then only those who insist are a warning."""
_INSISTS, _SPAN, _LATELY = 5, 7200.0, 6 * 3600.0
_DECORATION = "@ '\"[](){}<>;‘’“”+"


@check(
    id="refused-users",
    group="access",
    codes=["AUTHZ-UNAUTHORIZED", "GW-STALE-SETTINGS"],
    needs="refusals",
)
def refused_users(probes: Probes) -> Iterator[Finding | Partly]:
    """Did the bot refuse only strangers?"""
    refusals = probes.refusals()
    doors = {door.name: door for door in probes.doors()}
    paired = probes.pairing().approved
    waiting = {(one.platform, one.user) for one in probes.pairing().requests}
    left = 0
    crowded = _crowded(refusals)
    for one in refusals:
        door = doors.get(one.platform)
        if door and (door.admits(one.user) or one.user in paired.get(one.platform, ())):
            yield from _since(probes, door, one)
        elif (one.platform, one.user) in waiting:
            continue  # the check of pairing requests reports this person
        elif left < _SHOWN:
            left += 1
            yield _refused(probes, door, one, list(doors.values()), few=one.platform not in crowded)
        else:
            left += 1
    if left > _SHOWN:
        yield Partly(
            text(
                "the latest {shown} of {number} refused users are shown",
                shown=_SHOWN,
                number=left,
            )
        )


def _crowded(refusals: list[Refusal]) -> set[str]:
    """Return the platforms on which many strangers write to the bot."""
    names = [one.platform for one in refusals]
    return {name for name in names if names.count(name) > _FEW}


def _refused(
    probes: Probes, door: Entrance | None, one: Refusal, doors: list[Entrance], *, few: bool
) -> Finding:
    named = is_id(one.platform, one.user)
    who = one.user if named else "a user without a valid id"
    meant = list(_meant(probes, door, one, doors)) if named else []
    insists = one.insists(_INSISTS, _SPAN, _LATELY)
    alone = _nobody_is_approved(probes, door) and one.insists(_TRIES_AGAIN, _SPAN, _LATELY)
    where = f"{door.variable} in .env" if door else "the platform's list"
    if door and door.lists:
        where = f"{door.lists[0].source.name} in {door.lists[0].source.place}"
    fits = named and door is not None
    subject = f"{one.platform} {who}"
    asked = meant or insists or alone or (few and fits)
    return Finding(
        code="AUTHZ-UNAUTHORIZED",
        severity=Severity.WARNING if asked else Severity.INFO,
        title=text(
            "the bot refuses {user} on {platform}",
            user=who,
            platform=door.label if door else one.platform,
        ),
        subject=subject,
        detail=(
            "No user is approved on this platform yet, so the bot answers nobody there. This may "
            "be you or a stranger."
            if alone
            else "This user gets no answer, because the allowlist lacks the id. That is right for "
            "a stranger."
            if door and door.lists
            else "The bot ignores this user, which is right for a stranger."
        ),
        evidence=(
            Evidence(one.log, _often(one)),
            *meant,
            *([Evidence(where, "does not contain this id")] if door else []),
        ),
        since=one.first,
        next=_next(probes, door, one, where, subject if fits else ""),
        fix="add-allowed-user" if fits else None,
        data={"platform": one.platform, "user": one.user, "variable": door.variable}
        if door and named
        else {"platform": one.platform},
    )


def _nobody_is_approved(probes: Probes, door: Entrance | None) -> bool:
    """Return whether the platform has neither an allowlist nor a paired user."""
    return bool(door and not door.lists and not probes.pairing().approved.get(door.name))


def _next(probes: Probes, door: Entrance | None, one: Refusal, where: str, subject: str) -> str:
    """Return how to approve the user; a first allowlist would lock out all paired users."""
    paired = probes.pairing().approved.get(one.platform)
    if door and not door.lists and (door.invites or paired):
        return text(
            "If you know this user, ask for the pairing code that the bot sends and run "
            "`hermes pairing approve {platform} CODE`.",
            platform=one.platform,
        )
    if subject:
        return text(
            "If you know this user, run `hermes-doctor fix AUTHZ-UNAUTHORIZED --subject "
            "'{subject}' --apply --yes{home}`; it adds the id to {list}.",
            subject=subject,
            home=probes.home.option,
            list=where,
        )
    return text("If you know this user, add the id to {list}.", list=where)


def _often(one: Refusal) -> str:
    if len(one.times) == 1:
        return text("refused at {time}", time=ago(one.last))
    times = count(len(one.times), "time")
    return text("refused {times}, last at {time}", times=times, time=ago(one.last))


def _meant(
    probes: Probes, door: Entrance | None, one: Refusal, doors: list[Entrance]
) -> Iterator[Evidence]:
    """Yield evidence that the operator meant to let the user in."""
    for entry in door.listed if door else ():
        if entry != one.user and one.user in _bare(entry):
            yield Evidence(
                door.variable if door else "", "an entry contains this id between other characters"
            )
            break
    for other in doors:
        if other is not door and one.user in other.listed:
            yield Evidence(
                other.lists[0].source.place, f"the allowlist of {other.label} contains this id"
            )
    for path in probes.unread_lists(one.platform, one.user):
        yield Evidence(path, "contains this id, but Hermes does not read this list")
    for place in probes.paired_elsewhere(one.platform, one.user):
        yield Evidence(place, "approved here, but this gateway reads another folder")


def _bare(entry: str) -> list[str]:
    """Split an allowlist entry at quotes and other stray characters into possible ids."""
    words = entry
    for sign in _DECORATION:
        words = words.replace(sign, " ")
    return words.split()


def _since(probes: Probes, door: Entrance, one: Refusal) -> Iterator[Finding]:
    """Report a user who was added to the list after the running gateway had read it."""
    source = door.own.source if door.own else None
    gateways = probes.gateways()
    if source is None or source.file is None or not gateways or one.user not in door.listed:
        return
    began = gateways[0].started_at
    changed: datetime | None = probes.modified(probes.home / source.file)
    if changed is None or changed <= began:
        return
    after = one.last > changed
    yield Finding(
        code="GW-STALE-SETTINGS",
        severity=Severity.WARNING if after else Severity.INFO,
        title=text(
            "the gateway may still refuse {user} on {platform}",
            user=one.user,
            platform=door.label,
        ),
        subject=f"{one.platform} {one.user}",
        detail=(
            "The gateway reads allowlists when it starts, and .env again with the next message of "
            "an approved user. Until then it refuses this user."
        ),
        evidence=(
            Evidence(source.place, text("changed at {time}", time=ago(changed))),
            Evidence(one.log, _often(one)),
        ),
        since=changed,
        fix="restart-gateway" if after else None,
        data={"pid": gateways[0].pid},
    )
