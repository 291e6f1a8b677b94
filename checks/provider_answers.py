"""Check with `--network` that each model provider would answer the next message."""

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
    said,
    text,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Trial

_CODES = ["PROVIDER-401", "PROVIDER-402-429", "PROVIDER-403", "CFG-MODEL", "PROVIDER-DOWN"]
_VERDICTS = {
    "key": ("PROVIDER-401", "does not accept the key", "Put a valid key where it is read from."),
    "money": (
        "PROVIDER-402-429",
        "has no credit left for this account",
        "Add credit, or switch to another provider: `hermes-doctor switch-provider NAME`.",
    ),
    "limit": ("PROVIDER-402-429", "has had too many requests", "Wait, or name a fallback."),
    "refused": (
        "PROVIDER-403",
        "refuses the request",
        "The key is known, but it may not do this: look at the plan, the region and the proxy.",
    ),
    "model": ("CFG-MODEL", "does not know the model", "Set a model that this provider has."),
    "address": (
        "CFG-MODEL",
        "has no API at this address",
        "Look at the end of the address: most of them end with /v1.",
    ),
    "down": ("PROVIDER-DOWN", "fails", "Look at its status page; a fallback bridges such times."),
}
_STAGES = ("name", "connection", "certificate", "proxy")


@check(id="provider-answers", group="connections", codes=_CODES, limit=20)
def provider_answers(probes: Probes) -> Iterator[Finding | CouldNotLook]:
    """Would every model provider that is set up serve the next message?"""
    if not probes.network:
        raise Skip("the network is asked only with --network")
    if not probes.paid_requests:
        raise Skip("each answer costs a token, and this look is taken over and over")
    found = probes.trials()
    if not found:
        raise Skip("no provider is set up that can be asked with a key")
    bridged = any(one.is_fine for one in found)
    for one in found:
        if one.failed in _STAGES or one.is_fine:
            continue  # network-reach reports unreachable hosts
        if one.verdict and one.verdict.kind == "unsure":
            yield CouldNotLook(
                text("{name} answers with no message: {one}", name=said(one.name), one=_said(one))
            )
            continue
        yield _finding(one, bridged=bridged)


def _finding(one: Trial, *, bridged: bool) -> Finding:
    kind = one.verdict.kind if one.verdict else "down"
    code, words, advice = _VERDICTS[kind]
    first = one.route.path == "model"
    mild = kind == "limit" or bridged or not first
    return Finding(
        code=code,
        severity=Severity.WARNING if mild else Severity.ERROR,
        title=text("{name} {words}: {one}", name=said(one.name), words=words, one=_said(one)),
        subject=one.route.path,
        detail=advice if first else text("It is a fallback. {advice}", advice=advice),
        evidence=tuple(_evidence(one)),
    )


def _said(one: Trial) -> str:
    if one.verdict is None:
        return one.why
    said = f" ({one.verdict.message})" if one.verdict.message else ""
    return f"HTTP {one.verdict.status}{said}"


def _evidence(one: Trial) -> Iterator[Evidence]:
    route = one.route
    if route.base_url:
        through = f", through {one.proxy.name} ({one.proxy.variable})" if one.proxy else ""
        asked = f"asked {said(route.base_url.value)} in {one.seconds:.1f} s{through}"
        yield Evidence(route.base_url.source.place, asked)
    yield Evidence(route.model.source.place, f"model {said(route.model.value)}")
    if route.key:
        place = (route.key.source.via or route.key.source).place
        yield Evidence(place, f"key {said(route.key.name)}")
