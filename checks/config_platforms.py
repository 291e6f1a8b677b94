"""Find platform settings in config.yaml that Hermes silently ignores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.api import (
    Evidence,
    Finding,
    PassedOver,
    Probes,
    Resolved,
    Severity,
    Skip,
    check,
    named,
    passed_over,
    text,
)


@check(id="config-platforms", group="configuration", codes=["CFG-IGNORED"], by_release=True)
def config_platforms(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read all platform settings in config.yaml?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for one in passed_over(found):
        fix = _FIXES.get(one.kind) if one.curable else None
        data = {"path": one.path} | ({"new": one.instead} if one.kind == "name" else {})
        yield Finding(
            code="CFG-IGNORED",
            severity=_severity(found, one),
            title=_title(one, named(one.path)),
            subject=named(one.path),
            detail=_detail(one),
            next="" if fix else _next(one),
            evidence=(
                Evidence(
                    document.source(*one.path).place,
                    text(_SEEN[one.kind], setting=named(one.path)),
                ),
            ),
            fix=fix,
            data=data | ({"platform": one.platform} if one.platform else {}),
        )


_SEEN = {
    "list": "{setting} is not a mapping",
    "switch": "{setting} is not a mapping",
    "gateway": "{setting} is not a mapping",
    "name": "{setting} is not the name of a platform",
    "off": "{setting} is false",
    "unstarted": "{setting} has a token but not enabled: true",
    "token": "{setting} is set",
}
_FIXES = {
    "list": "reshape-platforms",
    "switch": "reshape-platforms",
    "unstarted": "reshape-platforms",
    "name": "rename-key",
    "token": "move-token",
}


def _severity(found: Resolved, one: PassedOver) -> Severity:
    """Rate the setting: an error if a platform stays silent because of it."""
    if not one.harm:
        return Severity.INFO
    if one.kind == "off" or (one.kind == "switch" and not one.value):
        return Severity.WARNING  # the platform answers although it should not
    if one.kind == "name":
        return Severity.ERROR if _is_enabled(found, one) else Severity.WARNING
    return Severity.ERROR


def _is_enabled(found: Resolved, one: PassedOver) -> bool:
    """Whether the block with the wrong name switches its platform on."""
    here: Any = found.world.raw
    for part in one.path:
        here = here.get(part) if isinstance(here, dict) else None
    return here is True or (isinstance(here, dict) and here.get("enabled") is True)


def _title(one: PassedOver, name: str) -> str:
    if one.kind == "name":
        return text('unknown platform "{name}" in config.yaml', name=named(one.path[-1:]))
    if one.kind == "switch" and one.harm and one.value:
        return text("{setting} does not switch {platform} on", setting=name, platform=one.platform)
    if one.kind == "switch" and one.harm:
        return text("{setting} does not switch {platform} off", setting=name, platform=one.platform)
    if one.kind == "off":
        return text("{platform} starts although config.yaml switches it off", platform=one.platform)
    if one.kind == "unstarted":
        return text("{setting} in config.yaml lacks enabled: true", setting=name)
    return text("{setting} in config.yaml is ignored", setting=name)


def _detail(one: PassedOver) -> str:
    if one.kind == "list":
        if one.harm:
            return "Nobody on these platforms gets an answer: Hermes reads only a mapping here."
        return "Hermes reads only a mapping here. The platforms start anyway."
    if one.kind == "switch":
        return _switch(one)
    if one.kind == "gateway":
        if one.harm:
            return "Because of this line, this release ignores all platform settings in the file."
        return "Hermes reads only a mapping here. Nothing is broken."
    if one.kind == "name":
        if one.harm:
            return text(
                "Hermes ignores this block, and {platform} does not start. Did you mean "
                '"{platform}"?',
                platform=one.instead,
            )
        return text('Hermes ignores this block. Did you mean "{platform}"?', platform=one.instead)
    if one.kind == "off":
        return "This release starts every platform whose token is in the environment."
    if one.kind == "unstarted":
        return text(
            "Nobody on {platform} gets an answer, because a token alone does not switch the "
            "platform on.",
            platform=one.platform,
        )
    return _token(one)


def _switch(one: PassedOver) -> str:
    if not one.harm:
        return text(
            "Hermes reads only a mapping here. Nothing is broken: {platform} is already as you "
            "want it.",
            platform=one.platform,
        )
    if one.value:
        return text(
            "Nobody on {platform} gets an answer, because Hermes reads only enabled: true below "
            "the name.",
            platform=one.platform,
        )
    return text(
        "{platform} still answers, because Hermes reads only enabled: false below the name.",
        platform=one.platform,
    )


def _token(one: PassedOver) -> str:
    right = one.instead or f"platforms.{one.platform}.token"
    if one.harm:
        return text(
            "Nobody on {platform} gets an answer, because Hermes reads the token only from "
            "{setting}.",
            platform=one.platform,
            setting=right,
        )
    return text(
        "Hermes reads the token of {platform} only from {setting}, where a usable one is set.",
        platform=one.platform,
        setting=right,
    )


def _next(one: PassedOver) -> str:
    if one.kind == "gateway":
        return "Delete the line; the settings of each platform decide what starts."
    if one.kind == "off" or (one.kind == "switch" and not one.value):
        return text(
            "Put a # before the token of {platform} in .env, then restart the gateway. Hermes "
            "0.18.0 and later read the switch.",
            platform=one.platform,
        )
    if one.kind == "switch":
        return text(
            "Write {platform}: below platforms:, and enabled: true below that.",
            platform=one.platform,
        )
    return ""
