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
    Skip,
    check,
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
)
def pairing_requests(probes: Probes) -> Iterator[Finding | Partly]:
    """Does everybody count who was paired, and does nobody wait for it?"""
    store = probes.pairing()
    if not (store.requests or store.lockouts or store.astray or store.approved):
        raise Skip("nobody was ever paired with this home")
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
    who = one.user if named else "somebody with an odd id"
    asked = _moment(one.at)
    served = bool(probes.runtime().served)
    return Finding(
        code="PAIRING-WAITING",
        severity=Severity.WARNING if alone else Severity.INFO,
        title=text(
            "{who} waits to be paired on {platform}, {left}",
            who=who,
            platform=one.platform,
            left=_left(one.at + 3600),
        ),
        subject=f"{one.platform} {who}",
        detail=(
            text(
                "If you know who that is, approve it: here, or with the code that "
                "they were shown (`hermes pairing approve {platform} CODE`). Else "
                "do nothing: it runs out.",
                platform=one.platform,
            )
            + (" One gateway serves several profiles here: use the command." if served else "")
        ),
        evidence=(
            Evidence(
                probes.home.name_of(store.folder / f"{one.platform}-pending.json"),
                (f"asked at {asked:%H:%M:%S} UTC" if asked else "bears a time that cannot be")
                + f", calls itself {_name(one.name)}",
            ),
        ),
        since=asked,
        fix="approve-pairing" if named and not served else None,
        data={"platform": one.platform, "user": one.user, "entry": one.entry},
    )


def _moment(at: float) -> datetime | None:
    """Return the time of a request; None if the stored number is not a valid time."""
    try:
        return datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _left(until: float) -> str:
    """Return how long something lasts; a time beyond one day was not written by Hermes."""
    seconds = until - time.time()
    if seconds > _DAY:
        return "without end"
    return f"for {max(1, int(seconds / 60))} minutes more"


def _name(text: str) -> str:
    """Return a user's display name, shortened and redacted."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return f"‘{spoken(short)}’" if short.strip() else "nothing"


def _locked(probes: Probes, store: Pairing, platform: str, until: float) -> Finding:
    plain = _plain(platform)
    return Finding(
        code="PAIRING-LOCKOUT",
        severity=Severity.WARNING,
        title=text(
            "nobody can be paired on {plain} {left}: five wrong codes were typed",
            plain=plain,
            left=_left(until),
        ),
        subject=plain,
        detail=(
            "Until then no code is given out, and a right one is refused. `hermes pairing list` "
            "shows a digest from 0.15 on, and not the code: only the person has that."
        ),
        evidence=(
            Evidence(
                probes.home.name_of(store.folder / "_rate_limits.json"),
                f"{plain} is locked {_left(until)}",
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
                "{user} was paired on {platform}, and is a stranger to the gateway",
                user=user,
                platform=platform,
            ),
            subject=f"{platform} {user}",
            detail=(
                text(
                    "The approval is in {there}, and this release looks into {here} "
                    "because that folder is there, too. If you know who that is, let "
                    "them in; whom you have shut out since is in the old file all the "
                    "same: do nothing then.",
                    there=there,
                    here=here,
                )
            ),
            evidence=(Evidence(f"{there}/{platform}-approved.json", f"{user} is only there"),),
            fix="merge-approvals",
            data={"platform": platform, "user": user},
        )
    if len(named) < len(users):
        yield Partly(f"{len(users) - len(named)} in {there} are no ids of {_plain(platform)}")
    if len(named) > _SHOWN:
        yield Partly(f"{len(named) - _SHOWN} more were paired in {there}; {_SHOWN} are named")


def _plain(platform: str) -> str:
    """Return the platform of a file; "?" if it cannot be the name of one."""
    return platform if platform.replace("_", "a").isalnum() and len(platform) < 40 else "?"
