"""Check for users whom the bot rejects or who wait for approval."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Partly, Probes, Severity, check, text
from hermes_doctor.api.settings import is_id
from hermes_doctor.api.stores import redact_log_text
from hermes_doctor.api.tools import ago, clock, count, duration

if TYPE_CHECKING:
    from hermes_doctor.api.settings import PlatformAdmission
    from hermes_doctor.api.stores import Pairing, PairingRequest, Refusal


_LONGEST = 40
_SHOWN = 12
"""There may be hundreds of strangers, and of approved users in an unused folder."""
_DAY = 86400.0
_HEALS = (0, 18, 1)
"""From this release on, the gateway merges the two folders when it starts."""


@check(
    id="pairing-requests",
    group="access",
    codes=["PAIRING-WAITING", "PAIRING-LOCKOUT", "PAIRING-ASTRAY"],
    by_release=["PAIRING-ASTRAY"],
    needs="pairing",
)
def pairing_requests(probes: Probes) -> Iterator[Finding | Partly]:
    """Are all pairing requests and approvals handled?"""
    store = probes.stores.pairing()
    for lockout in store.lockouts:
        yield _locked(probes, store, lockout.platform, lockout.until)
    doors = {door.name: door for door in probes.settings.admissions()} if store.requests else {}
    for request in store.requests:
        door = doors.get(request.platform)
        known = request.user in store.approved.get(request.platform, ())
        if not known and not (door and door.admits(request.user)):
            alone = not store.approved.get(request.platform) and not (door and door.listed)
            yield _waits(probes, store, request, alone=alone)
    installation = probes.hermes.installation()
    if installation is None or installation.release < _HEALS:
        for platform, users in store.astray.items():
            if installation is not None:
                yield from _astray(probes, store, platform, users)


def _waits(
    probes: Probes, store: Pairing, pairing_request: PairingRequest, *, alone: bool
) -> Finding:
    """Report a user who waits for approval; the pairing code is not shown."""
    named = is_id(pairing_request.platform, pairing_request.user)
    who = pairing_request.user if named else "a user with an invalid id"
    asked = _moment(pairing_request.at)
    served = bool(probes.gateway.runtime().served)
    return Finding(
        code="PAIRING-WAITING",
        severity=Severity.WARNING if alone else Severity.INFO,
        title=text(
            "{user} waits for approval on {platform}", user=who, platform=pairing_request.platform
        ),
        subject=f"{pairing_request.platform} {who}",
        detail=_expiry(pairing_request.at + 3600),
        evidence=(
            Evidence(
                probes.home.name_of(store.folder / f"{pairing_request.platform}-pending.json"),
                f"asked {clock(asked)}, name: {_name(pairing_request.name)}"
                if asked
                else f"invalid time, name: {_name(pairing_request.name)}",
            ),
        ),
        since=asked,
        fix="approve-pairing" if named and not served else None,
        data={
            "platform": pairing_request.platform,
            "user": pairing_request.user,
            "entry": pairing_request.entry,
        },
        next=(
            text(
                "If you know this person, run `hermes pairing approve {platform} CODE` with the "
                "code that they were shown.",
                platform=pairing_request.platform,
            )
            if served or not named
            else "Approve the request if you know this person; otherwise do nothing."
        ),
    )


def _moment(at: float) -> datetime | None:
    """Return the time of a request; None if the stored number is not a valid time."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _expiry(until: float) -> str:
    """Return when a request ends; a time beyond one day was not written by Hermes."""
    seconds = until - time.time()
    if seconds > _DAY:
        return "The request never expires, because its stored time is wrong."
    return text("The request expires in {period}.", period=duration(max(60, seconds)))


def _name(text: str) -> str:
    """Return a user's display name, shortened and redacted."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f"‘{redact_log_text(short)}’" if short.strip() else "none"


def _locked(probes: Probes, store: Pairing, platform: str, until: float) -> Finding:
    plain, seconds, end = _plain(platform), until - time.time(), _moment(until)
    return Finding(
        code="PAIRING-LOCKOUT",
        severity=Severity.WARNING,
        title=text("pairing on {platform} is locked: 5 wrong codes", platform=plain),
        subject=plain,
        detail=(
            "No new user can be approved. The lock never ends, because its stored time is wrong."
            if seconds > _DAY
            else text(
                "No new user can be approved for {period}, not even with the right code.",
                period=duration(max(60, seconds)),
            )
        ),
        evidence=(
            Evidence(
                probes.home.name_of(store.folder / "_rate_limits.json"),
                f"{plain} locked until {clock(end)}" if end else f"{plain} locked",
            ),
        ),
        fix="clear-lockout" if plain != "?" else None,
        data={"platform": platform},
    )


def _astray(
    probes: Probes, store: Pairing, platform: str, users: frozenset[str]
) -> Iterator[Finding | Partly]:
    """Report each user separately, so that users removed since are not approved again."""
    here, there = (probes.home.name_of(path) for path in (store.folder, store.other))
    named = sorted(user for user in users if is_id(platform, user))
    for user in named[:_SHOWN]:
        yield Finding(
            code="PAIRING-ASTRAY",
            severity=Severity.WARNING,
            title=text(
                "{user} is approved on {platform} but ignored", user=user, platform=platform
            ),
            subject=f"{platform} {user}",
            detail=text(
                "The approval is stored in {unused}, but this release reads only {used}.",
                unused=there,
                used=here,
            ),
            evidence=(Evidence(f"{there}/{platform}-approved.json", f"{user} is only here"),),
            fix="merge-approvals",
            data={"platform": platform, "user": user},
            next="Approve the user again, unless you removed them on purpose.",
        )
    if len(named) < len(users):
        invalid = count(len(users) - len(named), "entry", "entries")
        yield Partly(f"{invalid} in {there}: not a valid id of {_plain(platform)}")
    if len(named) > _SHOWN:
        yield Partly(f"{count(len(named) - _SHOWN, 'more user')} approved in {there}")


def _plain(platform: str) -> str:
    """Return the platform of a file; "?" if it cannot be the name of one."""
    return platform if platform.replace("_", "a").isalnum() and len(platform) < 40 else "?"


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
    refusals = probes.logs.refusals()
    doors = {door.name: door for door in probes.settings.admissions()}
    paired = probes.stores.pairing().approved
    waiting = {(request.platform, request.user) for request in probes.stores.pairing().requests}
    left = 0
    names = [refusal.platform for refusal in refusals]
    crowded = {name for name in names if names.count(name) > _FEW}
    for refusal in refusals:
        door = doors.get(refusal.platform)
        if door and (door.admits(refusal.user) or refusal.user in paired.get(refusal.platform, ())):
            yield from _since(probes, door, refusal)
        elif (refusal.platform, refusal.user) in waiting:
            continue  # the check of pairing requests reports this person
        elif left < _SHOWN:
            left += 1
            yield _refused(
                probes, door, refusal, list(doors.values()), few=refusal.platform not in crowded
            )
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


def _refused(
    probes: Probes,
    door: PlatformAdmission | None,
    refusal: Refusal,
    doors: list[PlatformAdmission],
    *,
    few: bool,
) -> Finding:
    named = is_id(refusal.platform, refusal.user)
    who = refusal.user if named else "a user without a valid id"
    meant = list(_meant(probes, door, refusal, doors)) if named else []
    insists = refusal.insists(_INSISTS, _SPAN, _LATELY)
    alone = _nobody_is_approved(probes, door) and refusal.insists(_TRIES_AGAIN, _SPAN, _LATELY)
    where = f"{door.variable} in .env" if door else "the platform's list"
    if door and door.lists:
        where = f"{door.lists[0].source.name} in {door.lists[0].source.place}"
    fits = named and door is not None
    subject = f"{refusal.platform} {who}"
    asked = meant or insists or alone or (few and fits)
    return Finding(
        code="AUTHZ-UNAUTHORIZED",
        severity=Severity.WARNING if asked else Severity.INFO,
        title=text(
            "the bot refuses {user} on {platform}",
            user=who,
            platform=door.label if door else refusal.platform,
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
            Evidence(refusal.log, _often(refusal)),
            *meant,
            *([Evidence(where, "does not contain this id")] if door else []),
        ),
        since=refusal.first,
        next=_next(probes, door, refusal, where, subject if fits else ""),
        fix="add-allowed-user" if fits else None,
        data={"platform": refusal.platform, "user": refusal.user, "variable": door.variable}
        if door and named
        else {"platform": refusal.platform},
    )


def _nobody_is_approved(probes: Probes, door: PlatformAdmission | None) -> bool:
    """Return whether the platform has neither an allowlist nor a paired user."""
    return bool(door and not door.lists and not probes.stores.pairing().approved.get(door.name))


def _next(
    probes: Probes, door: PlatformAdmission | None, refusal: Refusal, where: str, subject: str
) -> str:
    """Return how to approve the user; a first allowlist would lock out all paired users."""
    paired = probes.stores.pairing().approved.get(refusal.platform)
    if door and not door.lists and (door.invites or paired):
        return text(
            "If you know this user, ask for the pairing code that the bot sends and run "
            "`hermes pairing approve {platform} CODE`.",
            platform=refusal.platform,
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


def _often(refusal: Refusal) -> str:
    if len(refusal.times) == 1:
        return text("refused at {time}", time=ago(refusal.last))
    times = count(len(refusal.times), "time")
    return text("refused {times}, last at {time}", times=times, time=ago(refusal.last))


def _meant(
    probes: Probes, door: PlatformAdmission | None, refusal: Refusal, doors: list[PlatformAdmission]
) -> Iterator[Evidence]:
    """Yield evidence that the operator meant to let the user in."""
    for entry in door.listed if door else ():
        if entry != refusal.user and refusal.user in _bare(entry):
            yield Evidence(
                door.variable if door else "", "an entry contains this id between other characters"
            )
            break
    for other in doors:
        if other is not door and refusal.user in other.listed:
            yield Evidence(
                other.lists[0].source.place, f"the allowlist of {other.label} contains this id"
            )
    for path in probes.settings.ignored_lists(refusal.platform, refusal.user):
        yield Evidence(path, "contains this id, but Hermes does not read this list")
    for place in probes.stores.paired_elsewhere(refusal.platform, refusal.user):
        yield Evidence(place, "approved here, but this gateway reads another folder")


def _bare(entry: str) -> list[str]:
    """Split an allowlist entry at quotes and other stray characters into possible ids."""
    words = entry
    for sign in _DECORATION:
        words = words.replace(sign, " ")
    return words.split()


def _since(probes: Probes, door: PlatformAdmission, refusal: Refusal) -> Iterator[Finding]:
    """Report a user who was added to the list after the running gateway had read it."""
    source = door.own.source if door.own else None
    gateways = probes.gateway.running()
    if source is None or source.file is None or not gateways or refusal.user not in door.listed:
        return
    began = gateways[0].started_at
    changed: datetime | None = probes.files.modified(probes.home / source.file)
    if changed is None or changed <= began:
        return
    after = refusal.last > changed
    yield Finding(
        code="GW-STALE-SETTINGS",
        severity=Severity.WARNING if after else Severity.INFO,
        title=text(
            "the gateway may still refuse {user} on {platform}",
            user=refusal.user,
            platform=door.label,
        ),
        subject=f"{refusal.platform} {refusal.user}",
        detail=(
            "The gateway reads allowlists when it starts, and .env again with the next message of "
            "an approved user. Until then it refuses this user."
        ),
        evidence=(
            Evidence(source.place, text("changed at {time}", time=ago(changed))),
            Evidence(refusal.log, _often(refusal)),
        ),
        since=changed,
        fix="restart-gateway" if after else None,
        data={"pid": gateways[0].pid},
    )
