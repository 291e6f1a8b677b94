"""Check that nobody can use the bot, its API or its dashboard whom the operator did not let in."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.gateway import PROGRAMS
from hermes_doctor.api.providers import Resolved, ResolvedValue, Source, Text, redact_for_display
from hermes_doctor.api.settings import Access, PlatformBlock
from hermes_doctor.api.tools import listed

_ALWAYS_ASKS = (0, 18)
"""From this release on, the dashboard listens to the network only with a password."""


@check(id="open-dashboard", group="access", codes=["AUTHZ-DASHBOARD"], needs="hermes")
def open_dashboard(probes: Probes) -> Iterator[Finding]:
    """Is the dashboard protected from the network?"""
    installation = probes.hermes.installation()
    if installation is None or installation.release >= _ALWAYS_ASKS:
        raise Skip("this Hermes always protects the dashboard with a password")
    for dashboard in probes.gateway.open_dashboards():
        yield Finding(
            code="AUTHZ-DASHBOARD",
            severity=Severity.ERROR,
            title="the dashboard is open to the network without a password",
            subject="dashboard",
            detail="Everyone who can reach the port can read your keys and run commands.",
            evidence=(Evidence(f"process {dashboard.pid}", f"--host {dashboard.host} --insecure"),),
            next=(
                "Run `hermes dashboard --stop`, then start it without --host and --insecure and "
                "use an SSH tunnel."
            ),
        )


@check(
    id="api-exposure",
    group="access",
    codes=["GW-API-KEY-MISSING"],
    by_release=True,
    needs="platform:api_server",
)
def api_exposure(probes: Probes) -> Iterator[Finding]:
    """Is the key of the API server strong enough?"""
    server = probes.settings.api_server()
    if server is None:
        raise Skip("the API server is not switched on")
    if server.fault is None:
        return
    title = "the key of the API server is easy to guess"
    if server.refused:
        title = {
            "missing": "API server cannot start: API_SERVER_KEY is missing",
            "a placeholder": "API server cannot start: API_SERVER_KEY is a placeholder",
        }.get(server.fault, "API server cannot start: API_SERVER_KEY is too short")
    yield Finding(
        code="GW-API-KEY-MISSING",
        severity=Severity.ERROR if server.refused else Severity.WARNING,
        title=title,
        subject="api_server",
        detail=_detail(refused=server.refused, needed=server.needed),
        next=(
            "Set API_SERVER_KEY in .env to the output of `openssl rand -hex 32`, give it to the "
            "clients, then restart the gateway."
        ),
        evidence=(
            Evidence(server.place or ".env", f"API_SERVER_KEY is {server.fault}"),
            Evidence(
                server.host_place,
                text("listens on {host} (this machine only)", host=server.host)
                if server.local
                else text("listens on {host} (other machines can reach it)", host=server.host),
            ),
        ),
    )


def _detail(*, refused: bool, needed: int) -> str:
    if not refused:
        return "A stranger who guesses the key can use the bot and its tools."
    if needed > 1:
        return text(
            "Programs that use the API get no answer. This release needs a key of at least "
            "{length} characters.",
            length=needed,
        )
    return "Programs that use the API get no answer. This release needs a key."


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
    resolved = probes.settings.resolved()
    asked = [access for access in resolved.platforms if access.name in _OWN]
    if not asked:
        raise Skip("no platform with an access policy is set up")
    runs = _is_running(probes)
    for platform in asked:
        for kind in ("dm_policy", "group_policy"):
            policy = _policy(resolved, platform, kind)
            if policy is None:
                continue
            word = policy.strip().lower()
            if word == "open":
                yield from _open(resolved, platform, kind, policy.source, runs)
            elif word not in _WORDS:
                yield _unknown(resolved, platform, kind, word, policy.source)
            elif word == "disabled" and kind == "dm_policy":
                yield _disabled(resolved, platform, policy.source)


def _policy(resolved: Resolved, platform: Access, kind: str) -> Text | None:
    """Return the value of a policy; None if it is not set."""
    answer: ResolvedValue | None = (
        platform.dm_policy if kind == "dm_policy" else platform.group_policy
    )
    if answer is not None:
        return Text(answer.value or "", answer.source)
    if platform.name == "qqbot":
        return None
    return resolved.world.variables.get(f"{_OWN[platform.name]}_{kind.upper()}")


def _is_running(probes: Probes) -> bool:
    try:
        running = [gateway.pid for gateway in probes.gateway.running()]
        runtime = probes.gateway.runtime()
        owner = runtime.state_owner  # in a crash loop, a process that starts has not written yet
        return bool(owner and owner.pid in running and runtime.state in _UP)
    except CouldNotLook:
        return False


def _open(
    resolved: Resolved, platform: Access, kind: str, source: Source, runs: bool
) -> Iterator[Finding]:
    opted = ("GATEWAY_ALLOW_ALL_USERS", f"{_OWN[platform.name]}_ALLOW_ALL_USERS")
    if any(resolved.world.getenv(one).lower() in _TRUE for one in opted):
        return
    refuses = resolved.world.release.since(0, 18)
    data = _data(source, _closed(resolved, platform, kind))
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


def _closed(resolved: Resolved, platform: Access, kind: str) -> str:
    """Return the policy to set instead: `allowlist` if there is a list, else one without."""
    block = PlatformBlock(resolved.world, platform.name)
    prefix = _OWN[platform.name]
    if kind == "dm_policy":
        listed = platform.allow_from or resolved.world.getenv(f"{prefix}_ALLOWED_USERS")
        return "allowlist" if listed else "pairing"
    grouped = block.path("group_allow_from") or resolved.world.getenv(
        f"{prefix}_GROUP_ALLOWED_USERS"
    )
    return "allowlist" if grouped else "disabled"


def _disabled(resolved: Resolved, platform: Access, source: Source) -> Finding:
    """Report that direct messages are switched off; bad if the bot has no other platform."""
    groups = _policy(resolved, platform, "group_policy")
    closed = (groups.strip().lower() if groups else _NO_GROUPS.get(platform.name)) == "disabled"
    others = [
        access.label
        for access in resolved.platforms
        if access.name not in (platform.name, *PROGRAMS)
    ]
    data = _data(source, _closed(resolved, platform, "dm_policy"))
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


def _unknown(resolved: Resolved, platform: Access, kind: str, word: str, source: Source) -> Finding:
    strict = resolved.world.release.since(0, 18)
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
        evidence=(
            Evidence(
                source.place, f"{kind}: {redact_for_display(word)}" if word else f"{kind} is empty"
            ),
        ),
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
