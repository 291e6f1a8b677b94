"""Check that the lists of users who may talk to the bot are such that Hermes can use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.settings import display_path, ignored_allowlists
from hermes_doctor.api.tools import count

if TYPE_CHECKING:
    from hermes_doctor.api.settings import PlatformAdmission


@check(id="config-allowlists", group="configuration", codes=["CFG-ALLOWLIST-KEY"], by_release=True)
def config_allowlists(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read the allowlists in config.yaml?"""
    resolved = probes.settings.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for ignored_allowlist in ignored_allowlists(resolved):
        name, key = display_path(ignored_allowlist.path), ignored_allowlist.path[-1]
        ignored = [
            user
            for user in ignored_allowlist.users
            if user not in _paired(probes, ignored_allowlist.platform)
        ]
        if not ignored:
            detail = text("All its users are approved in another way, so nothing is broken.")
        elif ignored_allowlist.key:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads {right}, "
                "not {wrong}.",
                users=count(len(ignored), "user"),
                platform=ignored_allowlist.platform,
                right=ignored_allowlist.key,
                wrong=key,
            )
        elif ignored_allowlist.variable:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads only "
                "{variable} in .env.",
                users=count(len(ignored), "user"),
                platform=ignored_allowlist.platform,
                variable=ignored_allowlist.variable,
            )
        else:
            detail = text(
                "The bot ignores {users} on this list: for {platform} this release reads no list "
                "here.",
                users=count(len(ignored), "user"),
                platform=ignored_allowlist.platform,
            )
        yield Finding(
            code="CFG-ALLOWLIST-KEY",
            severity=Severity.ERROR if ignored else Severity.INFO,
            title=text("{setting} in config.yaml is ignored", setting=name),
            subject=name,
            detail=detail,
            next=(
                ""
                if ignored_allowlist.key or ignored_allowlist.variable or not ignored
                else "Approve these users with `hermes pairing approve`."
            ),
            evidence=(
                Evidence(
                    document.source(*ignored_allowlist.path).place,
                    text(
                        "{setting}: {users}",
                        setting=name,
                        users=count(len(ignored_allowlist.users), "user"),
                    ),
                ),
            ),
            fix="rename-key"
            if ignored_allowlist.key
            else "move-list"
            if ignored_allowlist.variable
            else None,
            data={"path": ignored_allowlist.path, "new": ignored_allowlist.key},
        )


def _paired(probes: Probes, platform: str) -> frozenset[str]:
    """Return the users whom a pairing code approved; empty if they cannot be read."""
    try:
        return probes.stores.pairing().approved.get(platform, frozenset())
    except CouldNotLook:
        return frozenset()


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
    doors = probes.settings.admissions()
    if not doors:
        raise Skip("no configured platform checks its users")
    for door in doors:
        yield from _users(probes, door)
        yield from _groups(probes, door)


def _users(probes: Probes, door: PlatformAdmission) -> Iterator[Finding]:
    """Report entries of the platform's own list of users."""
    if door.own is None or door.open or door.unasked or door.name not in _WRONG:
        return
    shape, form = _WRONG[door.name]
    wrong = _matching(shape, door.own)
    if wrong:
        nobody = len(wrong) == len(door.listed) and not door.elsewhere
        alone = nobody and not probes.stores.pairing().approved.get(door.name)
        yield _finding(door, door.own.source.name, door.own.source.place, wrong, form, alone=alone)


def _groups(probes: Probes, door: PlatformAdmission) -> Iterator[Finding]:
    """Report entries of the platform's list of groups."""
    if door.open:
        return
    variable, shape, form = _GROUPS.get(door.name, ("", "", ""))
    value = probes.settings.resolved().world.getenv(variable) if variable else None
    entries = {one.strip() for one in (value or "").split(",")}
    wrong = _matching(shape, value) if value and "*" not in entries else []
    if value and wrong:
        yield _finding(door, variable, value.source.place, wrong, form, alone=False)


def _matching(shape: str, entries: str) -> list[str]:
    found = [one.strip() for one in entries.split(",")]
    return [one for one in found if one and one != "*" and re.fullmatch(shape, one)]


def _finding(
    door: PlatformAdmission, name: str, place: str, wrong: list[str], form: str, *, alone: bool
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
