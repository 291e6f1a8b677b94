"""Check that each platform has all its login settings and that none is a placeholder."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import is_unset, redact_variable_name
from hermes_doctor.api.settings import NeededCredential, PlatformSetup, platform_setups
from hermes_doctor.api.tools import known_or, list_folder, listed, pattern

_WRONG = ("placeholder", "masked", "unresolved")
_NO_SECRET = ("_URL", "_HOST", "_ADDRESS", "_HOMESERVER", "_SERVER", "_CHANNEL")
_REFERENCE = pattern(r"\$\{([A-Za-z_]\w*)\}")


@check(
    id="platform-logins",
    group="platforms",
    codes=["PLATFORM-CREDENTIALS", "TOKEN-SHAPE"],
    by_release=True,
)
def platform_logins(probes: Probes) -> Iterator[Finding]:
    """Has every platform the settings it needs to log in?"""
    platforms = list(platform_setups(probes.settings.resolved().world))
    if not platforms:
        raise Skip("no platform that needs a login is set up")
    for platform in platforms:
        missing = [
            needed_credential
            for needed_credential in platform.needs
            if _is_missing(probes, platform, needed_credential)
        ]
        wrong = [one for one in platform.needs if one.state in _WRONG]
        if missing:
            yield from _incomplete(probes, platform, missing)
        for need in wrong:
            yield _example(probes, platform, need)
        if platform.because and not missing:
            yield from _shapes(platform, connected=_is_connected(probes, platform))


def _is_missing(probes: Probes, platform: PlatformSetup, need: NeededCredential) -> bool:
    if need.state != "missing":
        return False
    if platform.name == "weixin" and "WEIXIN_TOKEN" in need.variables:
        return not _logged_in(probes)
    return True


def _logged_in(probes: Probes) -> bool:
    """Return whether a login to Weixin is stored, which replaces the token."""
    return known_or(
        True,
        lambda: any(
            name.endswith(".json") for name in list_folder(probes.home / "weixin" / "accounts")
        ),
    )


def _incomplete(
    probes: Probes, platform: PlatformSetup, missing: list[NeededCredential]
) -> Iterator[Finding]:
    there = [needed_credential for needed_credential in platform.needs if needed_credential.value]
    names = [" or ".join(one.variables) for one in missing]
    evidence = [Evidence(one.value.source.place, f"{_name(one)} is set") for one in there]
    evidence += [Evidence(".env", f"{name} is not set") for name in names]
    sure = _surely_unset(probes, there, missing)
    severity = _severity(platform, there)
    if not sure and severity is Severity.ERROR:
        severity = Severity.WARNING
    yield Finding(
        code="PLATFORM-CREDENTIALS",
        severity=severity,
        title=text("{platform} lacks {names}", platform=platform.label, names=listed(names, 1)),
        subject=platform.name,
        detail=(
            text("Hermes does not start {platform}.", platform=platform.label)
            if not platform.because
            else text("Nobody on {platform} gets an answer.", platform=platform.label)
            if sure
            else text(
                "Nobody on {platform} gets an answer unless a service that hermes-doctor cannot "
                "read sets it.",
                platform=platform.label,
            )
        ),
        evidence=tuple(evidence),
        next=text("Add {names} to .env, then restart the gateway.", names=listed(names)),
    )


def _surely_unset(
    probes: Probes, there: list[NeededCredential], missing: list[NeededCredential]
) -> bool:
    """Return whether no file, process or service that was not read can set what is missing."""
    if any(not doubt.startswith("no Hermes") for doubt in probes.settings.resolved().doubts):
        return False
    if there or probes.gateway.running():
        return True
    return all(is_unset(probes, *needed_credential.variables) for needed_credential in missing)


def _severity(platform: PlatformSetup, there: list[NeededCredential]) -> Severity:
    if platform.because:
        return Severity.WARNING if platform.shared else Severity.ERROR
    harmless = all(_name(needed_credential).endswith(_NO_SECRET) for needed_credential in there)
    return Severity.INFO if harmless or platform.shared else Severity.WARNING


def _example(probes: Probes, platform: PlatformSetup, need: NeededCredential) -> Finding:
    name = _name(need)
    guess = name.upper().endswith("PASSWORD")
    return Finding(
        code="PLATFORM-CREDENTIALS",
        severity=Severity.WARNING if guess else Severity.ERROR,
        title=_mistake(platform, need, name),
        subject=f"{platform.name} {name}",
        detail=_effect(platform, need, guess=guess),
        evidence=(Evidence(need.value.source.place, f"{name}: {_given(probes, need)}"),),
        fix="fill-in-token" if (other := _referred(probes, need)) else None,
        data={"variable": need.variables[0], "other": other},
        next=""
        if other
        else text(
            "Put the real {name} into .env, then restart the gateway.", name=need.variables[0]
        ),
    )


def _mistake(platform: PlatformSetup, need: NeededCredential, name: str) -> str:
    if need.state == "masked":
        return text("{platform}: {name} is masked text", platform=platform.label, name=name)
    if need.state == "unresolved":
        return text(
            "{platform}: the variable in {name} is not filled in",
            platform=platform.label,
            name=name,
        )
    return text("{platform}: {name} is a placeholder", platform=platform.label, name=name)


def _effect(platform: PlatformSetup, need: NeededCredential, *, guess: bool) -> str:
    if need.state == "unresolved" and need.value.source.kind == "config":
        return text(
            "Nobody on {platform} gets an answer: Hermes does not replace ${{NAME}} in platform "
            "settings.",
            platform=platform.label,
        )
    if need.state == "unresolved":
        return text(
            "Nobody on {platform} gets an answer: the variable that it refers to is not set.",
            platform=platform.label,
        )
    if guess:
        return text(
            "If this is not the real password, nobody on {platform} gets an answer.",
            platform=platform.label,
        )
    return text(
        "Nobody on {platform} gets an answer, because the bot cannot log in.",
        platform=platform.label,
    )


def _given(probes: Probes, need: NeededCredential) -> str:
    """Describe the value of a setting; a reference to a variable is shown, a key is not."""
    match = _REFERENCE.fullmatch(need.value.strip())
    if match and redact_variable_name(probes.settings.resolved(), match[1]) == match[1]:
        return need.value.strip()
    return _shown(need.value)


def _shown(value: str) -> str:
    """Describe a value without showing it."""
    kind = f"({len(value)}-character value)"
    if any(char in value for char in "\"'"):
        return f"{kind} with a quotation mark"
    if any(char.isspace() for char in value.strip()):
        return f"{kind} with a space"
    return kind


def _referred(probes: Probes, need: NeededCredential) -> str | None:
    """Return the variable that a value in config.yaml refers to, if that variable is set."""
    match = _REFERENCE.fullmatch(need.value.strip())
    known = match and probes.settings.resolved().world.getenv(match[1])
    return match[1] if match and known and need.state == "unresolved" else None


def _is_connected(probes: Probes, platform: PlatformSetup) -> bool:
    """Return whether a running gateway says that the platform has accepted its login."""
    for gateway in probes.gateway.running():
        claim = (probes.gateway.claims(gateway) or {}).get(platform.name)
        if claim is not None and claim.state == "connected":
            return True
    return False


def _shapes(platform: PlatformSetup, *, connected: bool) -> Iterator[Finding]:
    for doubt in platform.doubts:
        fails = doubt.sure and not connected
        yield Finding(
            code="TOKEN-SHAPE",
            severity=(
                Severity.ERROR if fails else Severity.WARNING if doubt.sure else Severity.INFO
            ),
            title=(
                text("{variable} is not valid", variable=doubt.variable)
                if doubt.sure
                else text("{variable} looks unusual", variable=doubt.variable)
            ),
            subject=f"{platform.name} {doubt.variable}",
            detail=(
                text(
                    "Nobody on {platform} gets an answer: {platform} expects {shape}.",
                    platform=platform.label,
                    shape=doubt.shape,
                )
                if fails
                else text("{platform} expects {shape}.", platform=platform.label, shape=doubt.shape)
            ),
            evidence=(
                Evidence(doubt.value.source.place, f"{doubt.variable}: {_shown(doubt.value)}"),
            ),
            next=text("Copy {variable} again, then restart the gateway.", variable=doubt.variable),
        )


def _name(need: NeededCredential) -> str:
    """Return the variable or the path in config.yaml that sets it."""
    return need.value.source.name if need.value else need.variables[0]
