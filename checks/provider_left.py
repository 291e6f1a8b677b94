"""Check that messages do not go to OpenRouter or a built-in provider by mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Put
from hermes_doctor.api.providers import (
    RELAY_KEY,
    ConfiguredRoute,
    ProviderEntry,
    Resolved,
    Text,
    entry_with_address,
    ignored_relay,
    openrouter_name,
    redact_for_display,
    resolved_or_skip,
    routes,
    selectable_entries,
    vendor_of,
)
from hermes_doctor.api.settings import urls
from hermes_doctor.api.tools import sentences

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
    resolved = resolved_or_skip(probes)
    main, *links = routes(resolved)
    yield from _main(resolved, main)
    for way in links:
        if _is_bare(way) and vendor_of(way.route.model.value or "") is None:
            yield _unnamed(way)


def _main(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report one mistake about the main model: an unused address, or a name without vendor."""
    url = way.route.base_url
    if way.route.trouble or way.own is not None or url is None:
        return
    others = [value for value in url.shadows if value.source.name != "CUSTOM_BASE_URL"]
    relay = ignored_relay(resolved)
    ignored = [(other.value, other.source) for other in others]
    ignored += [(str(relay), relay.source)] if relay else []
    for address, source in ignored:
        entry = entry_with_address(resolved.world, address)
        if entry is not None:
            yield _address(
                resolved,
                way,
                entry,
                Evidence(source.place, f"ignored: {redact_for_display(address)}"),
            )
            return
    if relay:
        yield _relay(resolved, way, relay)
        return
    if _is_bare(way) and all(
        urls.belongs(resolved_value.value or "", "openrouter.ai") for resolved_value in others
    ):
        entry = _serves(resolved, str(way.route.model.value))
        yield _bare(resolved, way, entry) if entry else _unnamed(way)


def _is_bare(way: ConfiguredRoute) -> bool:
    """Return whether OpenRouter gets a model name without a vendor."""
    url, model = way.route.base_url, (way.route.model.value or "").strip()
    if way.route.trouble or url is None or way.model is None or not model:
        return False
    return urls.belongs(url.value or "", "openrouter.ai") and not set("/$@") & set(model)


def _serves(resolved: Resolved, model: str) -> ProviderEntry | None:
    """Return the only configured provider that may serve the model; None if it is not clear."""
    able = selectable_entries(resolved.world)
    listing = [
        provider_entry
        for provider_entry in able
        if model == provider_entry.model() or model in provider_entry.models()
    ]
    silent = [one for one in able if not one.model() and not one.models()]
    likely = listing or silent
    return likely[0] if len(likely) == 1 else None


def _address(
    resolved: Resolved, way: ConfiguredRoute, entry: ProviderEntry, evidence: Evidence
) -> Finding:
    """Report the address of a configured provider that Hermes ignores."""
    bare = _is_bare(way)
    goes_to = redact_for_display(
        urls.host(way.route.base_url.value or "" if way.route.base_url else "")
    )
    return _left(
        resolved,
        way,
        entry,
        severity=way.severity if bare else Severity.WARNING,
        title=text(
            "the address of {provider} is set, but messages go elsewhere",
            provider=redact_for_display(entry.name),
        ),
        detail=sentences(
            _FAILS
            if bare
            else text(
                "Every message goes to {host}, with your key for it and at its prices.",
                host=goes_to,
            ),
            text(
                'Did you mean "provider: {provider}"?',
                provider=redact_for_display(entry.word(resolved.world)),
            ),
        ),
        evidence=evidence,
    )


def _relay(resolved: Resolved, way: ConfiguredRoute, address: Text) -> Finding:
    """Report a relay that is set only by variables, which Hermes ignores."""
    key = way.route.key
    sent = key is not None and key.name == RELAY_KEY
    rejected = key is not None and sent and key.vendor != "openrouter.ai"
    plain = address.startswith(("http://", "https://")) and not set("?#@ ") & set(address)
    option = f" --key-env {RELAY_KEY}" if resolved.world.getenv(RELAY_KEY) else ""
    option += _other_model(resolved, way)
    option += " --no-fallback" if rejected else ""
    command = f"hermes-doctor switch-provider {_name(resolved, address)} --base-url "
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
            Evidence(address.source.place, f"ignored: {redact_for_display(address)}"),
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


def _other_model(resolved: Resolved, way: ConfiguredRoute) -> str:
    """Return the option that names the server's model, if its name at OpenRouter is another one."""
    vendor, _, model = (way.route.model.value or "").rpartition("/")
    wanted = resolved.world.getenv("OPENAI_MODEL") or (model if way.model is not None else "")
    if not vendor:
        return ""
    return f" --model {wanted if _PLAIN.fullmatch(wanted) else 'NAME'}"


def _name(resolved: Resolved, address: str) -> str:
    """Return a name for a new provider: that of its host, unless a built-in one has it."""
    labels = urls.host(address).split(".")
    word = labels[-2].lower() if len(labels) > 1 and not labels[-1].isdigit() else ""
    return word if word.isalnum() and resolved.world.release.provider(word) is None else "relay"


def _bare(resolved: Resolved, way: ConfiguredRoute, entry: ProviderEntry) -> Finding:
    """Report a model without vendor at OpenRouter while another provider is configured."""
    return _left(
        resolved,
        way,
        entry,
        severity=way.severity,
        title=text(
            "OpenRouter does not know the model {model}",
            model=redact_for_display(way.route.model.value),
        ),
        detail=sentences(
            _FAILS,
            text(
                'Did you mean "provider: {provider}"?',
                provider=redact_for_display(entry.word(resolved.world)),
            ),
        ),
        evidence=Evidence(
            way.route.model.source.place, f"model: {redact_for_display(way.route.model.value)}"
        ),
    )


def _left(
    resolved: Resolved,
    way: ConfiguredRoute,
    entry: ProviderEntry,
    *,
    severity: Severity,
    title: str,
    detail: str,
    evidence: Evidence,
) -> Finding:
    asked = way.route.requested
    where = asked.source if asked.value != "auto" else resolved.world.document.source(*way.provider)
    setting = (
        "no provider is set"
        if asked.value == "auto"
        else f"provider: {redact_for_display(asked.value)}"
    )
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
                resolved.world.document.source(*entry.path).place,
                f"{redact_for_display(entry.name)} is set up",
            ),
        ),
        fix="use-configured-provider" if model else None,
        data={"provider": entry.name, "model": model},
        next=""
        if model
        else text(
            "Run `hermes-doctor switch-provider {provider} --model NAME`.",
            provider=redact_for_display(entry.name),
        ),
    )


def _model(way: ConfiguredRoute, entry: ProviderEntry) -> str:
    """Return the model to use with the entry: the current one, unless the entry names others."""
    current = (way.route.model.value or "").strip()
    current = current if way.model is not None and "${" not in current else ""
    bare = current.removeprefix(f"{entry.name}/")
    known = [*entry.models(), *([entry.model() or ""] if entry.model() else [])]
    if known and bare not in known:
        return entry.model() or ""
    return bare


def _unnamed(way: ConfiguredRoute) -> Finding:
    """Report a model without vendor at OpenRouter, with its likely name there."""
    assert way.model is not None
    model = str(way.route.model.value).strip()
    name, sure = openrouter_name(model)
    guess = text('Did you mean "{model}"?', model=redact_for_display(name)) if name else ""
    fails = _FAILS if way.is_main else "This fallback fails: OpenRouter needs vendor/model."
    return Finding(
        code="CFG-MODEL",
        severity=way.severity,
        title=text("OpenRouter does not know the model {model}", model=redact_for_display(model)),
        subject=f"{way.route.path}: {redact_for_display(model)}",
        detail=sentences(fails, guess),
        evidence=(Evidence(way.route.model.source.place, f"model: {redact_for_display(model)}"),),
        fix="set-model" if sure else None,
        data={"edits": (Put(way.model, name),) if sure else ()},
        next=""
        if sure
        else "Choose a model with `hermes model`, or set the provider that serves this one.",
    )
