"""Check how providers answer, and the pool of keys with which Hermes asks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import CouldNotLook, Evidence, Finding, Probes, Severity, Skip, check, text
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Credential,
    Resolved,
    credential_pool,
    redact_for_display,
    resolved_or_skip,
    routes,
)
from hermes_doctor.api.tools import clock, count, known_or

if TYPE_CHECKING:
    from hermes_doctor.api.providers import AskAttempt, AskRecord, Trial


_CODES = ["PROVIDER-401", "PROVIDER-402-429", "PROVIDER-403", "CFG-MODEL", "PROVIDER-DOWN"]
_VERDICTS = {
    "key": ("PROVIDER-401", "{provider} rejects the key", "Set a valid key."),
    "money": (
        "PROVIDER-402-429",
        "{provider}: no credit left",
        "Add credit, or run `hermes-doctor switch-provider NAME`.",
    ),
    "limit": (
        "PROVIDER-402-429",
        "{provider} gets too many requests",
        "Wait, or set up a fallback.",
    ),
    "refused": (
        "PROVIDER-403",
        "{provider} refuses the request",
        "Check the plan and the region of the account, and the proxy.",
    ),
    "model": (
        "CFG-MODEL",
        "{provider} does not know the model",
        "Set a model that this provider serves.",
    ),
    "address": (
        "CFG-MODEL",
        "{provider}: no API at this address",
        "Check the end of the address; most end with /v1.",
    ),
    "down": (
        "PROVIDER-DOWN",
        "{provider} fails to answer",
        "Check the provider's status page, and set up a fallback.",
    ),
}
"""Code, title and the operator's step for each kind of answer."""
_STAGES = ("name", "connection", "certificate", "proxy")


@check(id="provider-answers", group="connections", codes=_CODES, limit=20, needs="network")
def provider_answers(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Does every model provider answer?"""
    if not probes.paid_requests:
        raise Skip("not repeated, because each answer costs a token")
    trials = probes.health.trials()
    if not trials:
        raise Skip("no provider with a key is set up")
    bridged = any(one.is_fine for one in trials)
    for trial in trials:
        if trial.is_fine:
            continue
        if trial.failed in _STAGES:  # why is reported by network-reach, for every host
            if trial.route.path == "model" and not bridged:
                yield _unreachable(trial)
            continue
        if trial.verdict and trial.verdict.kind == "unsure":
            yield CouldNotLook(
                "could not read the answer of {provider}: {answer}",
                provider=redact_for_display(trial.name),
                answer=_answer(trial),
            )
            continue
        kind = trial.verdict.kind if trial.verdict else "down"
        finding = _problem(kind, trial.name, trial.route.path, bridged=bridged)
        yield finding._replace(evidence=tuple(_evidence(trial)))


@check(id="provider-asked", group="connections", codes=_CODES, needs="ask")
def provider_asked(probes: Probes) -> Iterator[Finding]:
    """Did the model provider answer the last `hermes-doctor ask`?"""
    if probes.network and probes.paid_requests:
        raise Skip("--network asks the providers again")
    ask_record = probes.health.last_ask()
    for attempt in ask_record.attempts if ask_record else ():
        if ask_record and not attempt.is_fine:
            yield from _of_attempt(attempt, ask_record)


def _of_attempt(attempt: AskAttempt, record: AskRecord) -> Iterator[Finding]:
    direct = record.via == "provider"
    if direct and attempt.failed in _STAGES:
        finding = _problem("down", attempt.name, attempt.route, bridged=record.is_fine)
        title = text("{provider} cannot be reached", provider=redact_for_display(attempt.name))
        finding = finding._replace(
            title=title, next="Check the address of the provider and the network of this machine."
        )
    elif attempt.kind in _VERDICTS or (direct and attempt.failed):
        finding = _problem(
            attempt.kind or "down", attempt.name, attempt.route, bridged=record.is_fine
        )
    else:  # what the gateway or the provider said does not name a problem of the provider
        return
    words = redact_for_display(attempt.words) or "no reason given"
    if attempt.status and not words.startswith("HTTP"):
        words = f"HTTP {attempt.status}: {words}"
    asked = text(
        "{time}  {model} at {host}: {words}"
        if direct
        else "{time}  {model} through the gateway: {words}",
        time=clock(record.at),
        model=redact_for_display(attempt.model),
        host=attempt.host,
        words=words,
    )
    yield finding._replace(
        subject=f"{attempt.route} {attempt.provider}".strip(),
        since=record.at,
        evidence=(Evidence("hermes-doctor ask", asked),),
    )


def _problem(kind: str, name: str, path: str, *, bridged: bool) -> Finding:
    code, title, step = _VERDICTS[kind]
    first = path == "model"
    mild = kind == "limit" or bridged or not first
    return Finding(
        code=code,
        severity=Severity.WARNING if mild else Severity.ERROR,
        title=text(title, provider=redact_for_display(name)),
        subject=path,
        detail=(
            "This is a fallback; it does not help when the main model fails."
            if not first
            else "A fallback answers instead."
            if bridged
            else "Some messages may fail until the provider accepts more requests."
            if kind == "limit"
            else "Every message fails."
        ),
        next=step,
    )


def _unreachable(trial: Trial) -> Finding:
    return Finding(
        code="PROVIDER-DOWN",
        severity=Severity.ERROR,
        title=text("{provider} cannot be reached", provider=redact_for_display(trial.name)),
        subject=trial.route.path,
        detail="Every message fails.",
        evidence=tuple(_evidence(trial)),
        next="Check the address of the provider and the network of this machine.",
    )


def _answer(trial: Trial) -> str:
    if trial.verdict is None:
        return trial.why
    message = f" ({trial.verdict.message})" if trial.verdict.message else ""
    return f"HTTP {trial.verdict.status}{message}"


def _evidence(trial: Trial) -> Iterator[Evidence]:
    route = trial.route
    if route.base_url:
        through = f", through {trial.proxy.name} ({trial.proxy.variable})" if trial.proxy else ""
        asked = f"{redact_for_display(route.base_url.value)}, {trial.seconds:.1f} s{through}"
        yield Evidence(route.base_url.source.place, f"{_answer(trial)} from {asked}")
    yield Evidence(route.model.source.place, f"model {redact_for_display(route.model.value)}")
    if route.key:
        place = (route.key.source.via or route.key.source).place
        yield Evidence(place, f"key {redact_for_display(route.key.name)}")


_REFUSED = (401, 402, 403)
_NO_CREDIT = 402


@check(id="provider-pool", group="configuration", codes=["CRED-POOL-STALE"], by_release=True)
def provider_pool(probes: Probes) -> Iterator[Finding]:
    """Are the stored keys usable, and the ones you set used?"""
    resolved = resolved_or_skip(probes)
    if not resolved.world.store.get("credential_pool"):
        return
    for way in routes(resolved):
        name, entries = credential_pool(resolved, way.route)
        if entries:
            yield from _used_up(probes, resolved, way, name, entries)
            yield from _preferred(way, name, entries)


def _used_up(
    probes: Probes, resolved: Resolved, way: ConfiguredRoute, name: str, entries: list[Credential]
) -> Iterator[Finding]:
    """Report stored keys that are exhausted or dead."""
    now = resolved.world.now
    resting = [entry for entry in entries if entry.until is not None and now < entry.until]
    dead = [credential for credential in entries if credential.status == "dead"]
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
            provider=redact_for_display(provider),
        ),
        subject=f"{way.route.path}: {redact_for_display(name)}",
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
            Evidence(
                "auth.json",
                f"{redact_for_display(one.label)}: {redact_for_display(one.status)}" + _code(one),
            )
            for one in (*dead, *resting)[:5]
        ),
        next=_step(probes, name, resting, dead),
    )


def _step(probes: Probes, name: str, resting: list[Credential], dead: list[Credential]) -> str:
    """Return how to make the keys usable; a running gateway would overwrite auth.json."""
    runs = known_or(True, lambda: bool(probes.gateway.running()))
    provider = redact_for_display(name)
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
    if all(credential.raw.get("last_error_code") == _NO_CREDIT for credential in resting):
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


def _code(credential: Credential) -> str:
    code = credential.raw.get("last_error_code")
    return f", HTTP {code}" if isinstance(code, int) else ""


def _preferred(way: ConfiguredRoute, name: str, entries: list[Credential]) -> Iterator[Finding]:
    """Report a stored key that is used instead of a different one in .env or config.yaml."""
    key = way.route.key
    if key is None or key.source.kind != "pool":
        return
    others = [
        shadow
        for shadow in key.shadows
        if shadow.source.kind in ("env", "config", "process")
        and shadow.fingerprint != key.fingerprint
    ]
    entry = next((credential for credential in entries if credential.label == key.name), None)
    if not others or entry is None:
        return
    refused = entry.raw.get("last_error_code") in _REFUSED
    place = others[0].source.via or others[0].source
    yield Finding(
        code="CRED-POOL-STALE",
        severity=Severity.WARNING if refused else Severity.INFO,
        title=text("a stored key overrides {setting}", setting=redact_for_display(place.name)),
        subject=f"{way.route.path}: {redact_for_display(key.name)}",
        detail=(
            "Messages may fail: Hermes uses the key from auth.json, which the provider has refused "
            "before."
            if refused
            else "Hermes uses the key from auth.json first."
        ),
        evidence=(
            Evidence("auth.json", f"used: {redact_for_display(key.name)}" + _code(entry)),
            Evidence(place.place, f"not used: {redact_for_display(place.name)}"),
        ),
        next=text(
            "If {setting} is newer, stop the gateway and run `hermes auth remove {provider} "
            "{key}`.",
            setting=redact_for_display(place.name),
            provider=redact_for_display(name),
            key=redact_for_display(key.name),
        ),
    )
