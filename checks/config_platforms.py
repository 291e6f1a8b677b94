"""Find platform settings in config.yaml that Hermes silently ignores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import Resolved
from hermes_doctor.api.settings import IgnoredSetting, display_path, ignored_settings


@check(id="config-platforms", group="configuration", codes=["CFG-IGNORED"], by_release=True)
def config_platforms(probes: Probes) -> Iterator[Finding]:
    """Does Hermes read all platform settings in config.yaml?"""
    resolved = probes.settings.resolved()
    document = resolved.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml has no readable settings")
    for ignored_setting in ignored_settings(resolved):
        fix = _FIXES.get(ignored_setting.kind) if ignored_setting.curable else None
        data = {"path": ignored_setting.path} | (
            {"new": ignored_setting.instead} if ignored_setting.kind == "name" else {}
        )
        yield Finding(
            code="CFG-IGNORED",
            severity=_severity(resolved, ignored_setting),
            title=_title(ignored_setting, display_path(ignored_setting.path)),
            subject=display_path(ignored_setting.path),
            detail=_detail(ignored_setting),
            next="" if fix else _next(ignored_setting),
            evidence=(
                Evidence(
                    document.source(*ignored_setting.path).place,
                    text(_SEEN[ignored_setting.kind], setting=display_path(ignored_setting.path)),
                ),
            ),
            fix=fix,
            data=data
            | ({"platform": ignored_setting.platform} if ignored_setting.platform else {}),
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


def _severity(resolved: Resolved, setting: IgnoredSetting) -> Severity:
    """Rate the setting: an error if a platform stays silent because of it."""
    if not setting.harm:
        return Severity.INFO
    if setting.kind == "off" or (setting.kind == "switch" and not setting.value):
        return Severity.WARNING  # the platform answers although it should not
    if setting.kind == "name":
        return Severity.ERROR if _is_enabled(resolved, setting) else Severity.WARNING
    return Severity.ERROR


def _is_enabled(resolved: Resolved, setting: IgnoredSetting) -> bool:
    """Whether the block with the wrong name switches its platform on."""
    here: Any = resolved.world.raw
    for part in setting.path:
        here = here.get(part) if isinstance(here, dict) else None
    return here is True or (isinstance(here, dict) and here.get("enabled") is True)


def _title(setting: IgnoredSetting, name: str) -> str:
    if setting.kind == "name":
        return text(
            'unknown platform "{name}" in config.yaml', name=display_path(setting.path[-1:])
        )
    if setting.kind == "switch" and setting.harm and setting.value:
        return text(
            "{setting} does not switch {platform} on", setting=name, platform=setting.platform
        )
    if setting.kind == "switch" and setting.harm:
        return text(
            "{setting} does not switch {platform} off", setting=name, platform=setting.platform
        )
    if setting.kind == "off":
        return text(
            "{platform} starts although config.yaml switches it off", platform=setting.platform
        )
    if setting.kind == "unstarted":
        return text("{setting} in config.yaml lacks enabled: true", setting=name)
    return text("{setting} in config.yaml is ignored", setting=name)


def _detail(setting: IgnoredSetting) -> str:
    if setting.kind == "list":
        if setting.harm:
            return "Nobody on these platforms gets an answer: Hermes reads only a mapping here."
        return "Hermes reads only a mapping here. The platforms start anyway."
    if setting.kind == "switch":
        return _switch(setting)
    if setting.kind == "gateway":
        if setting.harm:
            return "Because of this line, this release ignores all platform settings in the file."
        return "Hermes reads only a mapping here. Nothing is broken."
    if setting.kind == "name":
        if setting.harm:
            return text(
                "Hermes ignores this block, and {platform} does not start. Did you mean "
                '"{platform}"?',
                platform=setting.instead,
            )
        return text(
            'Hermes ignores this block. Did you mean "{platform}"?', platform=setting.instead
        )
    if setting.kind == "off":
        return "This release starts every platform whose token is in the environment."
    if setting.kind == "unstarted":
        return text(
            "Nobody on {platform} gets an answer, because a token alone does not switch the "
            "platform on.",
            platform=setting.platform,
        )
    return _token(setting)


def _switch(setting: IgnoredSetting) -> str:
    if not setting.harm:
        return text(
            "Hermes reads only a mapping here. Nothing is broken: {platform} is already as you "
            "want it.",
            platform=setting.platform,
        )
    if setting.value:
        return text(
            "Nobody on {platform} gets an answer, because Hermes reads only enabled: true below "
            "the name.",
            platform=setting.platform,
        )
    return text(
        "{platform} still answers, because Hermes reads only enabled: false below the name.",
        platform=setting.platform,
    )


def _token(setting: IgnoredSetting) -> str:
    right = setting.instead or f"platforms.{setting.platform}.token"
    if setting.harm:
        return text(
            "Nobody on {platform} gets an answer, because Hermes reads the token only from "
            "{setting}.",
            platform=setting.platform,
            setting=right,
        )
    return text(
        "Hermes reads the token of {platform} only from {setting}, where a usable one is set.",
        platform=setting.platform,
        setting=right,
    )


def _next(setting: IgnoredSetting) -> str:
    if setting.kind == "gateway":
        return "Delete the line; the settings of each platform decide what starts."
    if setting.kind == "off" or (setting.kind == "switch" and not setting.value):
        return text(
            "Put a # before the token of {platform} in .env, then restart the gateway. Hermes "
            "0.18.0 and later read the switch.",
            platform=setting.platform,
        )
    if setting.kind == "switch":
        return text(
            "Write {platform}: below platforms:, and enabled: true below that.",
            platform=setting.platform,
        )
    return ""
