"""Check for keys in auth.json that are exhausted or override a different key set elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    CouldNotLook,
    Entry,
    Evidence,
    Finding,
    Probes,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    count,
    credential_pool,
    said,
    text,
    ways,
)

_REFUSED = (401, 402, 403)
_NO_CREDIT = 402


@check(id="provider-pool", group="configuration", codes=["CRED-POOL-STALE"], by_release=True)
def provider_pool(probes: Probes) -> Iterator[Finding]:
    """Are the stored keys usable, and the ones you set used?"""
    found = configured(probes)
    if not found.world.store.get("credential_pool"):
        return
    for way in ways(found):
        name, entries = credential_pool(found, way.route)
        if entries:
            yield from _used_up(probes, found, way, name, entries)
            yield from _preferred(way, name, entries)


def _used_up(
    probes: Probes, found: Resolved, way: Way, name: str, entries: list[Entry]
) -> Iterator[Finding]:
    """Report stored keys that are exhausted or dead."""
    now = found.world.now
    resting = [one for one in entries if one.until is not None and now < one.until]
    dead = [one for one in entries if one.status == "dead"]
    if not resting and not dead:
        return
    all_gone = len(resting) + len(dead) == len(entries)
    instead = way.route.key and way.route.key.state == "usable"
    if all_gone:
        severity = Severity.WARNING if instead else way.severity
    else:
        severity = Severity.WARNING if dead else Severity.INFO
    provider = name.removeprefix("custom:")
    fails = way.severity is Severity.ERROR
    yield Finding(
        code="CRED-POOL-STALE",
        severity=severity,
        title=text(
            "{gone} of {stored} for {provider} cannot be used",
            gone=len(resting) + len(dead),
            stored=count(len(entries), "stored key"),
            provider=said(provider),
        ),
        subject=f"{way.route.path}: {said(name)}",
        detail=(
            "Hermes uses the other keys."
            if not all_gone
            else "Hermes uses another key."
            if instead
            else "Every message fails, because Hermes has no other key."
            if fails
            else "Hermes has no other key for this provider."
        ),
        evidence=tuple(
            Evidence("auth.json", f"{said(one.label)}: {said(one.status)}" + _code(one))
            for one in (*dead, *resting)[:5]
        ),
        next=_step(probes, name, resting, dead),
    )


def _step(probes: Probes, name: str, resting: list[Entry], dead: list[Entry]) -> str:
    """Return how to make the keys usable; a running gateway would overwrite auth.json."""
    try:
        runs = bool(probes.gateways())
    except CouldNotLook:
        runs = True
    provider = said(name)
    if dead and runs:
        return text(
            "Stop the gateway, then remove dead keys with `hermes auth remove {provider} LABEL` "
            "and add new ones.",
            provider=provider,
        )
    if dead:
        return text(
            "Remove dead keys with `hermes auth remove {provider} LABEL` and add new ones.",
            provider=provider,
        )
    if all(one.raw.get("last_error_code") == _NO_CREDIT for one in resting):
        return text(
            "Add credit at {provider}. Hermes tries the keys again after a while, or at once after "
            "`hermes auth reset {provider}` while the gateway is stopped.",
            provider=provider,
        )
    if runs:
        return text(
            "Stop the gateway, then run `hermes auth reset {provider}` to try them again.",
            provider=provider,
        )
    return text("Run `hermes auth reset {provider}` to try them again.", provider=provider)


def _code(one: Entry) -> str:
    code = one.raw.get("last_error_code")
    return f", HTTP {code}" if isinstance(code, int) else ""


def _preferred(way: Way, name: str, entries: list[Entry]) -> Iterator[Finding]:
    """Report a stored key that is used instead of a different one in .env or config.yaml."""
    key = way.route.key
    if key is None or key.source.kind != "pool":
        return
    others = [
        one
        for one in key.shadows
        if one.source.kind in ("env", "config", "process") and one.fingerprint != key.fingerprint
    ]
    entry = next((one for one in entries if one.label == key.name), None)
    if not others or entry is None:
        return
    refused = entry.raw.get("last_error_code") in _REFUSED
    place = others[0].source.via or others[0].source
    yield Finding(
        code="CRED-POOL-STALE",
        severity=Severity.WARNING if refused else Severity.INFO,
        title=text("a stored key overrides {setting}", setting=said(place.name)),
        subject=f"{way.route.path}: {said(key.name)}",
        detail=(
            "Messages may fail: Hermes uses the key from auth.json, which the provider has refused "
            "before."
            if refused
            else "Hermes uses the key from auth.json first."
        ),
        evidence=(
            Evidence("auth.json", f"used: {said(key.name)}" + _code(entry)),
            Evidence(place.place, f"not used: {said(place.name)}"),
        ),
        next=text(
            "If {setting} is newer, stop the gateway and run `hermes auth remove {provider} "
            "{key}`.",
            setting=said(place.name),
            provider=said(name),
            key=said(key.name),
        ),
    )
