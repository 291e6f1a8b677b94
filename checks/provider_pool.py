"""Check for keys in auth.json that are exhausted or override a different key set elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Entry,
    Evidence,
    Finding,
    Probes,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    credential_pool,
    said,
    text,
    ways,
)

_REFUSED = (401, 402, 403)


@check(id="provider-pool", group="configuration", codes=["CRED-POOL-STALE"], by_release=True)
def provider_pool(probes: Probes) -> Iterator[Finding]:
    """Do stored keys leave the one in .env its say?"""
    found = configured(probes)
    if not found.world.store.get("credential_pool"):
        return
    for way in ways(found):
        name, entries = credential_pool(found, way.route)
        if entries:
            yield from _used_up(found, way, name, entries)
            yield from _preferred(way, name, entries)


def _used_up(found: Resolved, way: Way, name: str, entries: list[Entry]) -> Iterator[Finding]:
    """Report stored keys that are exhausted or dead."""
    now = found.world.now
    resting = [one for one in entries if one.until is not None and now < one.until]
    dead = [one for one in entries if one.status == "dead"]
    if not resting and not dead:
        return
    all_gone = len(resting) + len(dead) == len(entries)
    instead = way.route.key and way.route.key.state == "usable"
    severity = way.severity if all_gone and not instead else Severity.INFO
    provider = name.removeprefix("custom:")
    yield Finding(
        code="CRED-POOL-STALE",
        severity=severity,
        title=text(
            "{number} of {number_2} stored keys for {provider} ",
            number=len(resting) + len(dead),
            number_2=len(entries),
            provider=said(provider),
        )
        + ("are not used for now" if not dead else "are used up or dead"),
        subject=f"{way.route.path}: {said(name)}",
        detail=(
            text(
                "`hermes auth list` shows them, `hermes auth reset {name}` lets "
                "Hermes try them again at once, `hermes auth remove {name} LABEL` "
                "takes one out. Do that with the gateway stopped: it writes its "
                "own state back.",
                name=said(name),
            )
        ),
        evidence=tuple(
            Evidence("auth.json", f"{said(one.label)} is {said(one.status)}" + _code(one))
            for one in (*dead, *resting)[:5]
        ),
    )


def _code(one: Entry) -> str:
    code = one.raw.get("last_error_code")
    return f" after HTTP {code}" if isinstance(code, int) else ""


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
        title=text(
            "{key} in auth.json is used, and not {place}",
            key=said(key.name),
            place=said(place.name),
        ),
        subject=f"{way.route.path}: {said(key.name)}",
        detail=(
            text(
                "Stored keys count first. If {place} is the newer one, take the "
                "other out: `hermes auth remove {name} {key}`, with the gateway "
                "stopped.",
                place=said(place.name),
                name=said(name),
                key=said(key.name),
            )
        ),
        evidence=(
            Evidence("auth.json", f"{said(key.name)} was put there by hand" + _code(entry)),
            Evidence(place.place, f"{said(place.name)} is another key"),
        ),
    )
