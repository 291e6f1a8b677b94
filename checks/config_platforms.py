"""Find platform settings in config.yaml that Hermes silently ignores."""

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    PassedOver,
    Probes,
    Severity,
    Skip,
    check,
    named,
    passed_over,
)


@check(id="config-platforms", group="configuration", codes=["CFG-IGNORED"], by_release=True)
def config_platforms(probes: Probes) -> Iterator[Finding]:
    """Does all that config.yaml says about platforms count?"""
    found = probes.resolved()
    document = found.world.document
    if document.fault or not document.values:
        raise Skip("config.yaml holds no settings that can be read")
    for one in passed_over(found):
        title, detail = _words(one, named(one.path))
        renamed = {"path": one.path, "new": one.instead}
        yield Finding(
            code="CFG-IGNORED",
            severity=_severity(one),
            title=title,
            subject=named(one.path),
            detail=detail,
            evidence=(
                Evidence(document.source(*one.path).place, f"{named(one.path)} {_SEEN[one.kind]}"),
            ),
            fix=_FIXES.get(one.kind) if one.curable else None,
            data=renamed if one.kind == "name" else {"path": one.path},
        )


_SEEN = {
    "list": "is no mapping",
    "switch": "is no mapping",
    "gateway": "is no mapping",
    "name": "is the name of no platform",
    "off": "does not count",
    "unstarted": "has a token and no `enabled: true`",
    "token": "is not read in this place",
}
_FIXES = {
    "list": "reshape-platforms",
    "switch": "reshape-platforms",
    "unstarted": "reshape-platforms",
    "name": "rename-key",
    "token": "move-token",
}


def _severity(one: PassedOver) -> Severity:
    if not one.harm:
        return Severity.INFO
    return Severity.WARNING if one.kind in ("off", "name", "unstarted") else Severity.ERROR


def _words(one: PassedOver, name: str) -> tuple[str, str]:
    """Return the title and the detail of the finding."""
    if one.kind == "list":
        return (
            f"{name} in config.yaml is no mapping, so nothing in it counts",
            "Write each platform as a name with a colon and `enabled: true` below it.",
        )
    if one.kind == "switch":
        word = "on" if one.value else "off"
        return (
            f"{name} does not switch {one.platform} {word}: Hermes reads only `enabled` below it",
            f"Write `{one.platform}:` and below it, indented, `enabled: {str(one.value).lower()}`.",
        )
    if one.kind == "gateway":
        return (
            f"{name} in config.yaml is no mapping"
            + (", so this release ignores all platform settings" if one.harm else ""),
            "The settings of the gateway stand below `gateway:`. Take the line out; what runs is "
            "decided by the platforms.",
        )
    if one.kind == "name":
        return (
            f"{name} in config.yaml is no platform; {one.instead} is meant, it seems",
            f"Hermes passes over names that it does not know. Rename it to {one.instead}.",
        )
    if one.kind == "off":
        return (
            f"{one.platform} is switched off in config.yaml and starts all the same",
            "This release starts a platform whose token is in the environment. Put a # before the "
            "token in .env, or update to Hermes 0.18.0 or later, then restart the gateway.",
        )
    if one.kind == "unstarted":
        return (
            f"{name} has a token in config.yaml, but does not start without `enabled: true`",
            f"Add `enabled: true` below {name}.",
        )
    right = f"{one.instead} in .env" if one.instead else f"platforms.{one.platform}.token"
    return (
        f"{name} in config.yaml is not read"
        + (f", so {one.platform} has no token" if one.harm else ""),
        f"The token of {one.platform} is read from {right}. Move it there.",
    )
