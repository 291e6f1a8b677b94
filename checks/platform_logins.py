"""Check that each platform has all its login settings and that none is a placeholder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    CouldNotLook,
    Evidence,
    Finding,
    Probes,
    Severity,
    Skip,
    check,
    listing,
    pattern,
    text,
    wanted,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Need, Wanted

_WRONG = {
    "placeholder": "is still an example",
    "masked": "is masked: somebody copied a hidden value",
    "unresolved": "refers to a variable that nothing fills in here",
}
_NO_SECRET = ("_URL", "_HOST", "_ADDRESS", "_HOMESERVER", "_SERVER", "_CHANNEL")
_REFERENCE = pattern(r"\$\{([A-Za-z_]\w*)\}")
_RESTART = "and restart the gateway."


@check(
    id="platform-logins",
    group="platforms",
    codes=["PLATFORM-CREDENTIALS", "TOKEN-SHAPE"],
    by_release=True,
)
def platform_logins(probes: Probes) -> Iterator[Finding]:
    """Has every platform that is set up all that it needs to log in?"""
    platforms = list(wanted(probes.resolved().world))
    if not platforms:
        raise Skip("no platform is set up that logs in anywhere")
    for platform in platforms:
        missing = [one for one in platform.needs if _is_missing(probes, platform, one)]
        wrong = [one for one in platform.needs if one.state in _WRONG]
        if missing:
            yield from _incomplete(probes, platform, missing)
        for need in wrong:
            yield _example(probes, platform, need)
        if platform.because and not missing:
            yield from _shapes(platform)


def _is_missing(probes: Probes, platform: Wanted, need: Need) -> bool:
    if need.state != "missing":
        return False
    if platform.name == "weixin" and "WEIXIN_TOKEN" in need.variables:
        return not _logged_in(probes)
    return True


def _logged_in(probes: Probes) -> bool:
    """Return whether a login to Weixin is stored, which replaces the token."""
    try:
        return any(name.endswith(".json") for name in listing(probes.home / "weixin" / "accounts"))
    except CouldNotLook:
        return True


def _incomplete(probes: Probes, platform: Wanted, missing: list[Need]) -> Iterator[Finding]:
    there = [one for one in platform.needs if one.value]
    names = " and ".join(" or ".join(one.variables) for one in missing)
    evidence = [Evidence(one.value.source.place, f"{_name(one)} is set") for one in there]
    evidence += [Evidence(".env", f"no {' or '.join(one.variables)}") for one in missing]
    if platform.because:
        consequence = f"{platform.because} switches it on, and it never connects."
        severity = Severity.ERROR
        if not there and not probes.gateways():
            severity = Severity.INFO  # the service may set it
    else:
        consequence = "Hermes says nothing and does not start it."
        severity = Severity.WARNING
        if all(_name(one).endswith(_NO_SECRET) for one in there):
            severity = Severity.INFO
    if platform.shared:
        severity = Severity.WARNING if severity is Severity.ERROR else Severity.INFO
    if any(not one.startswith("no Hermes") for one in probes.resolved().doubts):
        severity = Severity.INFO  # it may be set in a place that was not read
    yield Finding(
        code="PLATFORM-CREDENTIALS",
        severity=severity,
        title=text(
            "{platform} is set up by half: {names} missing", platform=platform.label, names=names
        ),
        subject=platform.name,
        detail=text(
            "{consequence} Add {names} to .env {RESTART}",
            consequence=consequence,
            names=names,
            RESTART=_RESTART,
        ),
        evidence=tuple(evidence),
    )


def _example(probes: Probes, platform: Wanted, need: Need) -> Finding:
    name, what = _name(need), _WRONG[need.state]
    guess = name.upper().endswith("PASSWORD")
    more = ""
    if need.state == "unresolved" and need.value.source.kind == "config":
        more = " Hermes expands no ${NAME} in the settings of platforms: the text itself is sent."
    return Finding(
        code="PLATFORM-CREDENTIALS",
        severity=Severity.WARNING if guess else Severity.ERROR,
        title=text("{name} of {platform} {what}", name=name, platform=platform.label, what=what),
        subject=f"{platform.name} {name}",
        detail=text(
            "{platform} cannot log in.{more} Put the real one into .env {RESTART}",
            platform=platform.label,
            more=more,
            RESTART=_RESTART,
        ),
        evidence=(Evidence(need.value.source.place, f"{name} {what}"),),
        fix="fill-in-token" if (other := _referred(probes, need)) else None,
        data={"variable": need.variables[0], "other": other},
    )


def _referred(probes: Probes, need: Need) -> str | None:
    """Return the variable that a value in config.yaml refers to, if that variable is set."""
    match = _REFERENCE.fullmatch(need.value.strip())
    known = match and probes.resolved().world.getenv(match[1])
    return match[1] if match and known and need.state == "unresolved" else None


def _shapes(platform: Wanted) -> Iterator[Finding]:
    for doubt in platform.doubts:
        yield Finding(
            code="TOKEN-SHAPE",
            severity=Severity.WARNING if doubt.sure else Severity.INFO,
            title=text(
                "{variable} does not look like one of {platform}",
                variable=doubt.variable,
                platform=platform.label,
            ),
            subject=f"{platform.name} {doubt.variable}",
            detail=(
                text(
                    "It should be {shape}. Look for a wrong copy, for quotes, blanks "
                    "or a comment in the value, correct it {RESTART}",
                    shape=doubt.shape,
                    RESTART=_RESTART,
                )
            ),
            evidence=(Evidence(doubt.value.source.place, f"not of the form: {doubt.shape}"),),
        )


def _name(need: Need) -> str:
    """Return the variable or the path in config.yaml that sets it."""
    return need.value.source.name if need.value else need.variables[0]
