"""Check for entries of allowlists that no user or group can match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text

if TYPE_CHECKING:
    from hermes_doctor.api import Entrance

_WRONG = {
    "qqbot": (r"\d{5,12}|.*@.*", "the openid of the user, which the log shows"),
    "signal": (r"\d{6,15}", "the number with its + sign"),
    "slack": (r"[@#a-z].*|.*[@ ].*", "the member id (U…)"),
    "telegram": (r"(?!-?\d+$).*", "the numeric user id"),
}
"""What no id of a platform looks like, and what to write instead."""
_GROUPS = {
    "signal": (
        "SIGNAL_GROUP_ALLOWED_USERS",
        r"group[.:].*",
        "the id without `group.`",
    ),
    "telegram": (
        "TELEGRAM_GROUP_ALLOWED_CHATS",
        r"(?!-\d+$).*",
        "the numeric chat id (it starts with a minus sign)",
    ),
}


@check(
    id="allowlist-forms",
    group="access",
    codes=["AUTHZ-UNAUTHORIZED"],
    by_release=True,
    needs="platform",
)
def allowlist_forms(probes: Probes) -> Iterator[Finding]:
    """Can each entry of an allowlist match somebody?"""
    doors = probes.doors()
    if not doors:
        raise Skip("no configured platform checks its users")
    for door in doors:
        yield from _users(probes, door)
        yield from _groups(probes, door)


def _users(probes: Probes, door: Entrance) -> Iterator[Finding]:
    """Report entries of the platform's own list of users."""
    if door.own is None or door.open or door.unasked or door.name not in _WRONG:
        return
    shape, form = _WRONG[door.name]
    wrong = _matching(shape, door.own)
    if wrong:
        nobody = len(wrong) == len(door.listed) and not door.elsewhere
        alone = nobody and not probes.pairing().approved.get(door.name)
        yield _finding(door, door.own.source.name, door.own.source.place, wrong, form, alone=alone)


def _groups(probes: Probes, door: Entrance) -> Iterator[Finding]:
    """Report entries of the platform's list of groups."""
    if door.open:
        return
    variable, shape, form = _GROUPS.get(door.name, ("", "", ""))
    value = probes.resolved().world.getenv(variable) if variable else None
    entries = {one.strip() for one in (value or "").split(",")}
    wrong = _matching(shape, value) if value and "*" not in entries else []
    if value and wrong:
        yield _finding(door, variable, value.source.place, wrong, form, alone=False)


def _matching(shape: str, entries: str) -> list[str]:
    found = [one.strip() for one in entries.split(",")]
    return [one for one in found if one and one != "*" and re.fullmatch(shape, one)]


def _finding(
    door: Entrance, name: str, place: str, wrong: list[str], form: str, *, alone: bool
) -> Finding:
    return Finding(
        code="AUTHZ-UNAUTHORIZED",
        severity=Severity.ERROR if alone else Severity.WARNING,
        title=(
            text("an entry of {name} matches nobody", name=name)
            if len(wrong) == 1
            else text("{number} entries of {name} match nobody", number=len(wrong), name=name)
        ),
        subject=name,
        detail=(
            text(
                "The bot refuses everyone on {platform}: valid ids have another form.",
                platform=door.label,
            )
            if alone
            else text(
                "The person or group you meant gets no answer on {platform}.",
                platform=door.label,
            )
        ),
        evidence=tuple(Evidence(place, one) for one in wrong[:3]),
        next=text("Write {form}, then restart the gateway.", form=form),
    )
