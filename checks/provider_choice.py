"""Check that the provider and the prefix of the model's name match."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Edit,
    Evidence,
    Finding,
    Probes,
    Put,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    is_seller,
    own_provider,
    said,
    sentences,
    text,
    ways,
)

_SELLERS = ("openrouter", "nous", "kilocode", "ai-gateway", "custom")


@check(
    id="provider-choice",
    group="configuration",
    codes=["CFG-PROVIDER-LEFT", "CFG-MODEL-PREFIX"],
    by_release=True,
)
def provider_choice(probes: Probes) -> Iterator[Finding]:
    """Do the provider and the model belong together?"""
    found = configured(probes)
    for way in ways(found):
        prefix, slash, bare = (way.route.model.value or "").strip().partition("/")
        entry = own_provider(found.world, prefix) if slash and bare and way.model else None
        if entry is None:
            continue
        if way.own and way.own.path == entry.path:
            yield from _prefix(way, bare, is_seller(found.world, prefix.lower()))
        else:
            yield from _left(found, way, prefix, bare)


def _prefix(way: Way, bare: str, sold: bool) -> Iterator[Finding]:
    """Report a model name that still has the right provider's name in front."""
    assert way.own is not None and way.model is not None
    model = str(way.route.model.value).strip()
    listed = way.own.models()
    if model in listed or way.own.block.get("default_model") == model:
        return
    sure = bare in listed or way.own.model() == bare
    yield Finding(
        code="CFG-MODEL-PREFIX",
        severity=way.severity if sure else Severity.INFO if sold else Severity.WARNING,
        title=text('the model name starts with "{provider}/"', provider=said(way.own.name)),
        subject=way.route.path,
        detail=text(
            "Hermes sends the name unchanged, so the provider does not know the model. Did you "
            "mean {model}?",
            model=said(bare),
        )
        if sure
        else text(
            "Hermes sends the name unchanged. Did you mean {model}?",
            model=said(bare),
        ),
        evidence=(Evidence(way.route.model.source.place, f"model: {said(model)}"),),
        fix="strip-prefix",
        data={"edits": (Put(way.model, bare),)},
    )


def _left(found: Resolved, way: Way, prefix: str, bare: str) -> Iterator[Finding]:
    """Report a model name with one provider's prefix while messages go to another provider."""
    route, world = way.route, found.world
    goes_to = route.provider.value if route.provider else None
    if goes_to in _SELLERS and is_seller(world, prefix.lower()):
        return  # resold models may have the prefix of a custom provider
    entry = own_provider(world, prefix)
    assert entry is not None and way.model is not None
    asked = route.requested
    chosen = asked.source.kind in ("env", "process")
    word = entry.word(world)
    relayed = way.own is not None or goes_to == "custom"
    severity = Severity.INFO if relayed else way.severity  # relays may use such names themselves
    where = asked.source if asked.value != "auto" else world.document.source(*way.provider)
    setting = "no provider is set" if asked.value == "auto" else f"provider: {said(asked.value)}"
    needed = text(
        "It needs `provider: {provider}` and the model `{model}`.",
        provider=said(word),
        model=said(bare),
    )
    elsewhere = (
        text("Messages go to {address}.", address=said(route.base_url.value))
        if route.base_url
        else "Messages do not go there."
    )
    decides = (
        text("In this release {variable} decides.", variable=asked.source.name) if chosen else ""
    )
    edits: tuple[Edit, ...] = (Put(way.provider, word), Put(way.model, bare))
    if way.model == ("model",):
        edits = (Put(("model",), {"default": bare, "provider": word}),)
    yield Finding(
        code="CFG-PROVIDER-LEFT",
        severity=severity,
        title=text(
            "the model of {provider} is set, but messages go elsewhere", provider=said(entry.name)
        ),
        subject=route.path,
        detail=sentences(elsewhere, needed, decides),
        evidence=(
            Evidence(where.place, setting),
            Evidence(route.model.source.place, f"model: {said(route.model.value)}"),
            Evidence(world.document.source(*entry.path).place, f"{said(entry.name)} is set up"),
        ),
        fix=None if chosen or relayed else "use-own-provider",
        data={"edits": edits},
        next=text("Change {variable}.", variable=asked.source.name)
        if chosen
        else "Change both settings if you mean this provider."
        if relayed
        else "",
    )
