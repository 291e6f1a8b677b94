"""Check that the access policies of platforms are valid and let the gateway start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import Block, Evidence, Finding, Probes, Severity, Skip, Text, check, text

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
    """Does Hermes start with what the policies of the platforms say?"""
    found = probes.resolved()
    asked = [one for one in found.platforms if one.name in _OWN]
    if not asked:
        raise Skip("no platform is set up that has a policy of its own")
    for platform in asked:
        for kind in ("dm_policy", "group_policy"):
            said = _policy(found, platform, kind)
            if said is None:
                continue
            word = said.strip().lower()
            if word == "open":
                yield from _open(found, platform, kind, said.source)
            elif word not in _WORDS:
                yield _unknown(found, platform, kind, word, said.source)


def _policy(found: Resolved, platform: Access, kind: str) -> Text | None:
    """Return the value of a policy; None if it is not set."""
    said: Answer | None = platform.dm_policy if kind == "dm_policy" else platform.group_policy
    if said is not None:
        return Text(said.value or "", said.source)
    if platform.name == "qqbot":
        return None
    return found.world.variables.get(f"{_OWN[platform.name]}_{kind.upper()}")


def _open(found: Resolved, platform: Access, kind: str, source: Source) -> Iterator[Finding]:
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
                "the gateway refuses to start: {kind} of {platform} is open to everybody",
                kind=kind,
                platform=platform.label,
            )
            if refuses
            else text(
                "{kind} of {platform} is open, with which 0.18 and later do not start",
                kind=kind,
                platform=platform.label,
            )
        ),
        subject=f"{platform.name} {kind}",
        detail=(
            text(
                "Set it to allowlist or pairing and start the gateway. Only where "
                "anybody may use this machine, set {opted}=true in .env instead.",
                opted=opted[1],
            )
        ),
        evidence=(
            Evidence(source.place, f"{kind} is open"),
            Evidence(".env", f"neither {opted[0]} nor {opted[1]}"),
        ),
        fix="set-policy" if refuses and data else None,
        data=data,
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


def _unknown(found: Resolved, platform: Access, kind: str, word: str, source: Source) -> Finding:
    strict = found.world.release.since(0, 18)
    nobody = strict and (kind == "dm_policy" or platform.name in ("qqbot", "whatsapp", "yuanbao"))
    effect = "nobody gets through" if nobody else "it lets everybody through"
    meant = _meant(word)
    data = _data(source, meant) if meant is not None else {}
    return Finding(
        code="PLATFORM-POLICY",
        severity=Severity.ERROR if nobody and kind == "dm_policy" else Severity.WARNING,
        title=text(
            "{kind} of {platform} is no word that Hermes knows, so {effect}",
            kind=kind,
            platform=platform.label,
            effect=effect,
        ),
        subject=f"{platform.name} {kind}",
        detail=(
            text("Write one of {WORDS} and restart the gateway.", WORDS=", ".join(_WORDS))
            + ("" if word else " An empty variable counts as a word, too: take it out.")
        ),
        evidence=(
            Evidence(source.place, f"{kind} is {'empty' if not word else 'something else'}"),
        ),
        fix="set-policy" if data else None,
        data=data,
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
