"""Check who may talk to the bot, and that Hermes can use the lists of these users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.settings import display_path, ignored_allowlists
from hermes_doctor.api.tools import count, known_or, listed

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
    return known_or(
        frozenset(), lambda: probes.stores.pairing().approved.get(platform, frozenset())
    )


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
