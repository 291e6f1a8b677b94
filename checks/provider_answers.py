"""Check that each model provider answers: with `--network`, or by the last `hermes-doctor ask`."""

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
    clock,
    said,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import AskAttempt, AskRecord, Trial

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
    found = probes.trials()
    if not found:
        raise Skip("no provider with a key is set up")
    bridged = any(one.is_fine for one in found)
    for one in found:
        if one.is_fine:
            continue
        if one.failed in _STAGES:  # why is reported by network-reach, for every host
            if one.route.path == "model" and not bridged:
                yield _unreachable(one)
            continue
        if one.verdict and one.verdict.kind == "unsure":
            yield CouldNotLook(
                text(
                    "could not read the answer of {provider}: {answer}",
                    provider=said(one.name),
                    answer=_answer(one),
                )
            )
            continue
        yield _finding(one, bridged=bridged)


@check(id="provider-asked", group="connections", codes=_CODES, needs="ask")
def provider_asked(probes: Probes) -> Iterator[Finding]:
    """Did the model provider answer the last `hermes-doctor ask`?"""
    if probes.network and probes.paid_requests:
        raise Skip("--network asks the providers again")
    found = probes.last_ask()
    for one in found.attempts if found else ():
        if found and not one.is_fine:
            yield from _of_attempt(one, found)


def _of_attempt(one: AskAttempt, found: AskRecord) -> Iterator[Finding]:
    direct = found.via == "provider"
    if direct and one.failed in _STAGES:
        made = _problem("down", one.name, one.route, bridged=found.is_fine)
        title = text("{provider} cannot be reached", provider=said(one.name))
        made = made._replace(
            title=title, next="Check the address of the provider and the network of this machine."
        )
    elif one.kind in _VERDICTS or (direct and one.failed):
        made = _problem(one.kind or "down", one.name, one.route, bridged=found.is_fine)
    else:  # what the gateway or the provider said does not name a problem of the provider
        return
    words = said(one.words) or "no reason given"
    if one.status and not words.startswith("HTTP"):
        words = f"HTTP {one.status}: {words}"
    asked = text(
        "{time}  {model} at {host}: {words}"
        if direct
        else "{time}  {model} through the gateway: {words}",
        time=clock(found.at),
        model=said(one.model),
        host=one.host,
        words=words,
    )
    yield made._replace(
        subject=f"{one.route} {one.provider}".strip(),
        since=found.at,
        evidence=(Evidence("hermes-doctor ask", asked),),
    )


def _finding(one: Trial, *, bridged: bool) -> Finding:
    kind = one.verdict.kind if one.verdict else "down"
    made = _problem(kind, one.name, one.route.path, bridged=bridged)
    return made._replace(evidence=tuple(_evidence(one)))


def _problem(kind: str, name: str, path: str, *, bridged: bool) -> Finding:
    code, title, step = _VERDICTS[kind]
    first = path == "model"
    mild = kind == "limit" or bridged or not first
    return Finding(
        code=code,
        severity=Severity.WARNING if mild else Severity.ERROR,
        title=text(title, provider=said(name)),
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


def _unreachable(one: Trial) -> Finding:
    return Finding(
        code="PROVIDER-DOWN",
        severity=Severity.ERROR,
        title=text("{provider} cannot be reached", provider=said(one.name)),
        subject=one.route.path,
        detail="Every message fails.",
        evidence=tuple(_evidence(one)),
        next="Check the address of the provider and the network of this machine.",
    )


def _answer(one: Trial) -> str:
    if one.verdict is None:
        return one.why
    message = f" ({one.verdict.message})" if one.verdict.message else ""
    return f"HTTP {one.verdict.status}{message}"


def _evidence(one: Trial) -> Iterator[Evidence]:
    route = one.route
    if route.base_url:
        through = f", through {one.proxy.name} ({one.proxy.variable})" if one.proxy else ""
        asked = f"{said(route.base_url.value)}, {one.seconds:.1f} s{through}"
        yield Evidence(route.base_url.source.place, f"{_answer(one)} from {asked}")
    yield Evidence(route.model.source.place, f"model {said(route.model.value)}")
    if route.key:
        place = (route.key.source.via or route.key.source).place
        yield Evidence(place, f"key {said(route.key.name)}")
