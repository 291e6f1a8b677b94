"""Check for users who wait to be paired, locked pairing, and approvals in an unused folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    Evidence,
    Finding,
    Partly,
    Probes,
    Severity,
    check,
    clock,
    count,
    duration,
    is_id,
    spoken,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Pairing, PairingRequest

_LONGEST = 40
_SHOWN = 12
"""An unused folder may hold hundreds of approved users."""
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
    store = probes.pairing()
    for lockout in store.lockouts:
        yield _locked(probes, store, lockout.platform, lockout.until)
    doors = {door.name: door for door in probes.doors()} if store.requests else {}
    for request in store.requests:
        door = doors.get(request.platform)
        known = request.user in store.approved.get(request.platform, ())
        if not known and not (door and door.admits(request.user)):
            alone = not store.approved.get(request.platform) and not (door and door.listed)
            yield _waits(probes, store, request, alone=alone)
    found = probes.installation()
    if found is None or found.release < _HEALS:
        for platform, users in store.astray.items():
            if found is not None:
                yield from _astray(probes, store, platform, users)


def _waits(probes: Probes, store: Pairing, one: PairingRequest, *, alone: bool) -> Finding:
    """Report a user who waits for approval; the pairing code is not shown."""
    named = is_id(one.platform, one.user)
    who = one.user if named else "a user with an invalid id"
    asked = _moment(one.at)
    served = bool(probes.runtime().served)
    return Finding(
        code="PAIRING-WAITING",
        severity=Severity.WARNING if alone else Severity.INFO,
        title=text("{user} waits for approval on {platform}", user=who, platform=one.platform),
        subject=f"{one.platform} {who}",
        detail=_expiry(one.at + 3600),
        evidence=(
            Evidence(
                probes.home.name_of(store.folder / f"{one.platform}-pending.json"),
                f"asked {clock(asked)}, name: {_name(one.name)}"
                if asked
                else f"invalid time, name: {_name(one.name)}",
            ),
        ),
        since=asked,
        fix="approve-pairing" if named and not served else None,
        data={"platform": one.platform, "user": one.user, "entry": one.entry},
        next=(
            text(
                "If you know this person, run `hermes pairing approve {platform} CODE` with the "
                "code that they were shown.",
                platform=one.platform,
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
    return f"‘{spoken(short)}’" if short.strip() else "none"


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
    here, there = (probes.home.name_of(one) for one in (store.folder, store.other))
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
