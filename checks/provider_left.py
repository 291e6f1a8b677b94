"""Check that messages do not go to OpenRouter or a built-in provider by mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermes_doctor.api import (
    RELAY_KEY,
    Evidence,
    Finding,
    Probes,
    Put,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    ignored_relay,
    openrouter_name,
    own_provider_at,
    said,
    selectable_providers,
    sentences,
    text,
    urls,
    vendor_of,
    ways,
)

if TYPE_CHECKING:
    from hermes_doctor.api import Own, Text

_PLAIN = re.compile(r"[\w.:/-]+")
_FAILS = "Every message fails: it goes to OpenRouter, whose models are all named like vendor/model."


@check(
    id="provider-left",
    group="configuration",
    codes=["CFG-PROVIDER-LEFT", "CFG-MODEL"],
    by_release=True,
)
def provider_left(probes: Probes) -> Iterator[Finding]:
    """Do messages go to the provider whose address or model is set?"""
    found = configured(probes)
    main, *links = ways(found)
    yield from _main(found, main)
    for way in links:
        if _is_bare(way) and vendor_of(way.route.model.value or "") is None:
            yield _unnamed(way)


def _main(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report one mistake about the main model: an unused address, or a name without vendor."""
    url = way.route.base_url
    if way.route.trouble or way.own is not None or url is None:
        return
    others = [one for one in url.shadows if one.source.name != "CUSTOM_BASE_URL"]
    relay = ignored_relay(found)
    ignored = [(one.value, one.source) for one in others]
    ignored += [(str(relay), relay.source)] if relay else []
    for address, source in ignored:
        entry = own_provider_at(found.world, address)
        if entry is not None:
            yield _address(found, way, entry, Evidence(source.place, f"ignored: {said(address)}"))
            return
    if relay:
        yield _relay(found, way, relay)
        return
    if _is_bare(way) and all(urls.belongs(one.value or "", "openrouter.ai") for one in others):
        entry = _serves(found, str(way.route.model.value))
        yield _bare(found, way, entry) if entry else _unnamed(way)


def _is_bare(way: Way) -> bool:
    """Return whether OpenRouter gets a model name without a vendor."""
    url, model = way.route.base_url, (way.route.model.value or "").strip()
    if way.route.trouble or url is None or way.model is None or not model:
        return False
    return urls.belongs(url.value or "", "openrouter.ai") and not set("/$@") & set(model)


def _serves(found: Resolved, model: str) -> Own | None:
    """Return the only configured provider that may serve the model; None if it is not clear."""
    able = selectable_providers(found.world)
    listing = [one for one in able if model == one.model() or model in one.models()]
    silent = [one for one in able if not one.model() and not one.models()]
    likely = listing or silent
    return likely[0] if len(likely) == 1 else None


def _address(found: Resolved, way: Way, entry: Own, evidence: Evidence) -> Finding:
    """Report the address of a configured provider that Hermes ignores."""
    bare = _is_bare(way)
    goes_to = said(urls.host(way.route.base_url.value or "" if way.route.base_url else ""))
    return _left(
        found,
        way,
        entry,
        severity=way.severity if bare else Severity.WARNING,
        title=text(
            "the address of {provider} is set, but messages go elsewhere",
            provider=said(entry.name),
        ),
        detail=sentences(
            _FAILS
            if bare
            else text(
                "Every message goes to {host}, with your key for it and at its prices.",
                host=goes_to,
            ),
            text('Did you mean "provider: {provider}"?', provider=said(entry.word(found.world))),
        ),
        evidence=evidence,
    )


def _relay(found: Resolved, way: Way, address: Text) -> Finding:
    """Report a relay that is set only by variables, which Hermes ignores."""
    key = way.route.key
    sent = key is not None and key.name == RELAY_KEY
    rejected = key is not None and sent and key.vendor != "openrouter.ai"
    plain = address.startswith(("http://", "https://")) and not set("?#@ ") & set(address)
    option = f" --key-env {RELAY_KEY}" if found.world.getenv(RELAY_KEY) else ""
    option += _other_model(found, way)
    option += " --no-fallback" if rejected else ""
    command = f"hermes-doctor switch-provider {_name(found, address)} --base-url "
    return Finding(
        code="CFG-PROVIDER-LEFT",
        severity=way.severity if rejected or _is_bare(way) else Severity.WARNING,
        title="messages go to OpenRouter, not to OPENAI_BASE_URL",
        subject=way.route.path,
        detail=sentences(
            text("Hermes ignores {variable}.", variable="OPENAI_BASE_URL"),
            "Every message fails: OpenRouter gets the key of the other server and rejects it."
            if rejected
            else _FAILS
            if _is_bare(way)
            else "Every message is paid at OpenRouter.",
        ),
        evidence=(
            Evidence(address.source.place, f"ignored: {said(address)}"),
            *(
                (Evidence(key.source.place, f"{RELAY_KEY} is sent to openrouter.ai"),)
                if key is not None and sent
                else ()
            ),
        ),
        next="Switch to this server with `hermes-doctor switch-provider`, or remove the variable.",
        data={
            "suggests": (
                f"{command}{address.rstrip('/') if plain else 'ADDRESS'}{option}",
                "use this server; shows the plan",
            )
        },
    )


def _other_model(found: Resolved, way: Way) -> str:
    """Return the option that names the server's model, if its name at OpenRouter is another one."""
    vendor, _, model = (way.route.model.value or "").rpartition("/")
    wanted = found.world.getenv("OPENAI_MODEL") or (model if way.model is not None else "")
    if not vendor:
        return ""
    return f" --model {wanted if _PLAIN.fullmatch(wanted) else 'NAME'}"


def _name(found: Resolved, address: str) -> str:
    """Return a name for a new provider: that of its host, unless a built-in one has it."""
    labels = urls.host(address).split(".")
    word = labels[-2].lower() if len(labels) > 1 and not labels[-1].isdigit() else ""
    return word if word.isalnum() and found.world.release.provider(word) is None else "relay"


def _bare(found: Resolved, way: Way, entry: Own) -> Finding:
    """Report a model without vendor at OpenRouter while another provider is configured."""
    return _left(
        found,
        way,
        entry,
        severity=way.severity,
        title=text("OpenRouter does not know the model {model}", model=said(way.route.model.value)),
        detail=sentences(
            _FAILS,
            text('Did you mean "provider: {provider}"?', provider=said(entry.word(found.world))),
        ),
        evidence=Evidence(way.route.model.source.place, f"model: {said(way.route.model.value)}"),
    )


def _left(
    found: Resolved,
    way: Way,
    entry: Own,
    *,
    severity: Severity,
    title: str,
    detail: str,
    evidence: Evidence,
) -> Finding:
    asked = way.route.requested
    where = asked.source if asked.value != "auto" else found.world.document.source(*way.provider)
    setting = "no provider is set" if asked.value == "auto" else f"provider: {said(asked.value)}"
    model = _model(way, entry)
    return Finding(
        code="CFG-PROVIDER-LEFT",
        severity=severity,
        title=title,
        subject=way.route.path,
        detail=detail,
        evidence=(
            evidence,
            Evidence(where.place, setting),
            Evidence(
                found.world.document.source(*entry.path).place, f"{said(entry.name)} is set up"
            ),
        ),
        fix="use-configured-provider" if model else None,
        data={"provider": entry.name, "model": model},
        next=""
        if model
        else text(
            "Run `hermes-doctor switch-provider {provider} --model NAME`.",
            provider=said(entry.name),
        ),
    )


def _model(way: Way, entry: Own) -> str:
    """Return the model to use with the entry: the current one, unless the entry names others."""
    current = (way.route.model.value or "").strip()
    current = current if way.model is not None and "${" not in current else ""
    bare = current.removeprefix(f"{entry.name}/")
    known = [*entry.models(), *([entry.model() or ""] if entry.model() else [])]
    if known and bare not in known:
        return entry.model() or ""
    return bare


def _unnamed(way: Way) -> Finding:
    """Report a model without vendor at OpenRouter, with its likely name there."""
    assert way.model is not None
    model = str(way.route.model.value).strip()
    name, sure = openrouter_name(model)
    guess = text('Did you mean "{model}"?', model=said(name)) if name else ""
    fails = _FAILS if way.is_main else "This fallback fails: OpenRouter needs vendor/model."
    return Finding(
        code="CFG-MODEL",
        severity=way.severity,
        title=text("OpenRouter does not know the model {model}", model=said(model)),
        subject=f"{way.route.path}: {said(model)}",
        detail=sentences(fails, guess),
        evidence=(Evidence(way.route.model.source.place, f"model: {said(model)}"),),
        fix="set-model" if sure else None,
        data={"edits": (Put(way.model, name),) if sure else ()},
        next=""
        if sure
        else "Choose a model with `hermes model`, or set the provider that serves this one.",
    )
