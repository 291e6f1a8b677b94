"""Check that the access policies of platforms are valid and let the gateway start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    PROGRAMS,
    Block,
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    Text,
    check,
    listed,
    said,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Access, Answer, Resolved, Source

_OWN = {
    "wecom": "WECOM",
    "weixin": "WEIXIN",
    "yuanbao": "YUANBAO",
    "qqbot": "QQ",
    "whatsapp": "WHATSAPP",
}
"""The platforms that have policies of their own, with the prefix of their variables."""
_WORDS = ("open", "allowlist", "pairing", "disabled")
_NO_GROUPS = {"weixin": "disabled"}
"""The platforms that ignore groups unless a policy says otherwise."""
_UP = ("running", "degraded", "draining")
"""The states that a gateway writes once it works."""
_TRUE = ("true", "1", "yes")
_MEANT = {
    "whitelist": "allowlist",
    "allow_list": "allowlist",
    "allow-list": "allowlist",
    "list": "allowlist",
    "pair": "pairing",
    "false": "disabled",
    "off": "disabled",
    "none": "disabled",
    "deny": "disabled",
    "closed": "disabled",
}


@check(
    id="open-policies",
    group="platforms",
    codes=["AUTHZ-OPEN-REFUSE", "PLATFORM-POLICY"],
    by_release=True,
)
def open_policies(probes: Probes) -> Iterator[Finding]:
    """Are the access policies of the platforms valid?"""
    found = probes.resolved()
    asked = [one for one in found.platforms if one.name in _OWN]
    if not asked:
        raise Skip("no platform with an access policy is set up")
    runs = _is_running(probes)
    for platform in asked:
        for kind in ("dm_policy", "group_policy"):
            policy = _policy(found, platform, kind)
            if policy is None:
                continue
            word = policy.strip().lower()
            if word == "open":
                yield from _open(found, platform, kind, policy.source, runs)
            elif word not in _WORDS:
                yield _unknown(found, platform, kind, word, policy.source)
            elif word == "disabled" and kind == "dm_policy":
                yield _disabled(found, platform, policy.source)


def _policy(found: Resolved, platform: Access, kind: str) -> Text | None:
    """Return the value of a policy; None if it is not set."""
    answer: Answer | None = platform.dm_policy if kind == "dm_policy" else platform.group_policy
    if answer is not None:
        return Text(answer.value or "", answer.source)
    if platform.name == "qqbot":
        return None
    return found.world.variables.get(f"{_OWN[platform.name]}_{kind.upper()}")


def _is_running(probes: Probes) -> bool:
    try:
        running = [gateway.pid for gateway in probes.gateways()]
        runtime = probes.runtime()
        owner = runtime.state_owner  # in a crash loop, a process that starts has not written yet
        return bool(owner and owner.pid in running and runtime.state in _UP)
    except CouldNotLook:
        return False


def _open(
    found: Resolved, platform: Access, kind: str, source: Source, runs: bool
) -> Iterator[Finding]:
    opted = ("GATEWAY_ALLOW_ALL_USERS", f"{_OWN[platform.name]}_ALLOW_ALL_USERS")
    if any(found.world.getenv(one).lower() in _TRUE for one in opted):
        return
    refuses = found.world.release.since(0, 18)
    data = _data(source, _closed(found, platform, kind))
    yield Finding(
        code="AUTHZ-OPEN-REFUSE",
        severity=Severity.CRITICAL if refuses else Severity.INFO,
        title=(
            text(
                "{platform} is open to everyone, so Hermes does not start", platform=platform.label
            )
            if refuses
            else text(
                "{platform} is open to everyone; Hermes 0.18 would not start",
                platform=platform.label,
            )
        ),
        subject=f"{platform.name} {kind}",
        detail=(
            "The running gateway still answers. Hermes starts with an open policy only if another "
            "setting allows all users."
            if refuses and runs
            else "Nobody gets an answer. Hermes starts with an open policy only if another setting "
            "allows all users."
            if refuses
            else "Later releases start with an open policy only if another setting allows all "
            "users."
        ),
        evidence=(
            Evidence(source.place, f"{kind}: open"),
            Evidence(".env", f"neither {opted[0]} nor {opted[1]}"),
        ),
        fix="set-policy" if refuses and data else None,
        data=data,
        next=text(
            "Set {kind} to allowlist or pairing; set {variable}=true only if anybody may use the "
            "bot.",
            kind=kind,
            variable=opted[1],
        ),
    )


def _closed(found: Resolved, platform: Access, kind: str) -> str:
    """Return the policy to set instead: `allowlist` if there is a list, else one without."""
    block = Block(found.world, platform.name)
    prefix = _OWN[platform.name]
    if kind == "dm_policy":
        listed = platform.allow_from or found.world.getenv(f"{prefix}_ALLOWED_USERS")
        return "allowlist" if listed else "pairing"
    grouped = block.path("group_allow_from") or found.world.getenv(f"{prefix}_GROUP_ALLOWED_USERS")
    return "allowlist" if grouped else "disabled"


def _disabled(found: Resolved, platform: Access, source: Source) -> Finding:
    """Report that direct messages are switched off; bad if the bot has no other platform."""
    groups = _policy(found, platform, "group_policy")
    closed = (groups.strip().lower() if groups else _NO_GROUPS.get(platform.name)) == "disabled"
    others = [one.label for one in found.platforms if one.name not in (platform.name, *PROGRAMS)]
    data = _data(source, _closed(found, platform, "dm_policy"))
    return Finding(
        code="PLATFORM-POLICY",
        severity=Severity.INFO if others else Severity.ERROR if closed else Severity.WARNING,
        title=text("{platform}: direct messages are switched off", platform=platform.label),
        subject=f"{platform.name} dm_policy",
        detail=(
            text(
                "The bot ignores them here. It has other platforms: {others}.",
                others=listed(others),
            )
            if others
            else "Nobody gets an answer: the bot ignores direct messages, messages in groups, "
            "and has no other platform."
            if closed
            else "The bot ignores every direct message and answers only in groups. It has no "
            "other platform."
        ),
        evidence=(Evidence(source.place, "dm_policy: disabled"),),
        fix="set-policy" if data and not others else None,
        data=data,
        next="" if data else "Set it to allowlist or pairing, then restart the gateway.",
    )


def _unknown(found: Resolved, platform: Access, kind: str, word: str, source: Source) -> Finding:
    strict = found.world.release.since(0, 18)
    nobody = strict and (kind == "dm_policy" or platform.name in ("qqbot", "whatsapp", "yuanbao"))
    meant = _meant(word)
    data = _data(source, meant) if meant is not None else {}
    return Finding(
        code="PLATFORM-POLICY",
        severity=Severity.ERROR if nobody and kind == "dm_policy" else Severity.WARNING,
        title=(
            text("{platform}: unknown {kind}", platform=platform.label, kind=kind)
            if word
            else text("{platform}: {kind} is empty", platform=platform.label, kind=kind)
        ),
        subject=f"{platform.name} {kind}",
        detail=(
            "Hermes ignores every direct message because it does not know the value."
            if nobody and kind == "dm_policy"
            else "Hermes ignores every message in groups because it does not know the value."
            if nobody
            else "Hermes does not know the value and lets everyone write to the bot."
        ),
        evidence=(Evidence(source.place, f"{kind}: {said(word)}" if word else f"{kind} is empty"),),
        fix="set-policy" if data else None,
        data=data,
        next=""
        if data
        else "Set it to open, allowlist, pairing or disabled, then restart the gateway.",
    )


def _meant(word: str) -> str | None:
    """Return the most likely intended word, never `open`; empty means: remove the value."""
    import difflib

    if not word:
        return ""
    near = difflib.get_close_matches(word, _WORDS[1:], 1, 0.7)
    return _MEANT.get(word) or (near[0] if near else None)


def _data(source: Source, value: str) -> dict[str, object]:
    """Return where the fix writes the value; empty if only the service can set it."""
    if source.kind == "config":
        return {"path": tuple(source.name.split(".")), "value": value}
    return {"variable": source.name, "value": value} if source.kind == "env" else {}
