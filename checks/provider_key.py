"""Check that the provider's API key is set and is not a placeholder or masked text."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Put
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Key,
    Resolved,
    each_once,
    is_unset,
    likely_variable,
    provider_entries,
    redact_for_display,
    redact_variable_name,
    resolved_or_skip,
    routes,
    variable,
)
from hermes_doctor.api.settings import urls
from hermes_doctor.api.tools import known_or, pattern, sentences

_LOGINS = ("anthropic", "copilot", "lmstudio")
"""Providers whose login may be outside the home, or that need no key."""
_FAILS = "Every message fails."
_UNLESS_A_SERVICE = (
    "Every message fails, unless a service that hermes-doctor cannot read sets the key."
)
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")


@check(
    id="provider-key",
    group="configuration",
    codes=["PROVIDER-KEY", "ENV-REDACTED"],
    by_release=True,
)
def provider_key(probes: Probes) -> Iterator[Finding]:
    """Is the API key of the provider set?"""
    yield from each_once(_each(probes, resolved_or_skip(probes)))


def _each(probes: Probes, resolved: Resolved) -> Iterator[Finding]:
    """Report the mistakes of each route."""
    for way in routes(resolved):
        key, trouble = way.route.key, way.route.trouble
        if trouble and trouble.kind == "none":
            yield from _nothing(probes, resolved, way)
        elif trouble:
            if trouble.kind == "key" and way.is_main:
                yield from _missing(probes, resolved, way)
        elif key and key.state in ("missing", "not needed"):
            yield from _missing(probes, resolved, way)
        elif key and _is_none(way, key):
            yield _no_key(way, key)


def _nothing(probes: Probes, resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a home with a configured platform but without any provider."""
    if not _serves(resolved):
        return
    unset = is_unset(probes, "OPENROUTER_API_KEY", "OPENAI_API_KEY")
    if unset is False:
        return
    yield Finding(
        code="PROVIDER-KEY",
        severity=way.severity if unset else Severity.WARNING,
        title="no model provider is set up",
        subject=way.route.path,
        detail=_FAILS if unset else _UNLESS_A_SERVICE,
        evidence=(Evidence("config.yaml", "no provider; no key in .env"),),
        next="Choose one with `hermes model`, or put its key into .env.",
    )


def _serves(resolved: Resolved) -> bool:
    """Return whether a platform is configured, so that a gateway of this home has users."""
    return any(
        token.state == "usable" for platform in resolved.platforms for token in platform.tokens
    )


def _has_gateway(probes: Probes) -> bool:
    """Return whether a gateway of this home runs, or a service would start one."""
    return known_or(
        False, lambda: bool(probes.gateway.running() or probes.gateway.supervision().owner)
    )


def _missing(probes: Probes, resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report that no usable key is set where Hermes looks for it."""
    name = likely_variable(resolved, way.own)
    if way.own and name:
        yield _unnamed(resolved, way, name)
        return
    names = _names(resolved, way)
    if not names or _has_pool(resolved, way):
        return
    for one in names:
        key = variable(resolved, one)
        if _is_none(way, key):
            yield _no_key(way, key)
            return
        if key.state in ("usable", "placeholder"):
            return  # set in an ignored line of .env: another check reports that
    unset = is_unset(probes, *names)
    if unset is False or (not _serves(resolved) and not _has_gateway(probes)):
        return
    written = resolved.world.readings.dotenv.values.get(names[0])
    source = written.source if written is not None else way.route.requested.source
    shown = [redact_variable_name(resolved, one) for one in names]
    yield Finding(
        code="PROVIDER-KEY",
        severity=way.severity if unset else Severity.WARNING,
        title=text("no key for {provider} was found", provider=redact_for_display(_name(way))),
        subject=way.route.path,
        detail=(
            "The provider cannot be used, unless a service that hermes-doctor cannot read sets "
            "the key."
            if not unset and way.severity is not Severity.ERROR
            else _UNLESS_A_SERVICE
            if not unset
            else _effect(way)
        ),
        evidence=(Evidence(source.place, f"{' and '.join(shown)} not set"),),
        caused_by=_cause(resolved, way),
        next=(
            text("Put {variable}=… into .env.", variable=shown[0])
            if shown[0] == names[0]
            else "Put the variable that `key_env` names into .env."
        ),
    )


def _unnamed(resolved: Resolved, way: ConfiguredRoute, name: str) -> Finding:
    """Report a custom provider without a key although a variable of its name is set."""
    assert way.own is not None
    return Finding(
        code="PROVIDER-KEY",
        severity=way.severity,
        title=text(
            "{provider} in config.yaml names no key", provider=redact_for_display(way.own.name)
        ),
        subject=way.route.path,
        detail=sentences(
            _effect(way),
            text(
                "{variable} is set, but Hermes does not use it.", variable=redact_for_display(name)
            ),
        ),
        evidence=(
            Evidence(
                resolved.world.document.source(*way.own.path).place, "no key_env and no api_key"
            ),
            Evidence(
                resolved.world.getenv(name).source.place, f"{redact_for_display(name)} is set"
            ),
        ),
        fix="name-key",
        data={"edits": (Put((*way.own.path, "key_env"), name),)},
    )


def _names(resolved: Resolved, way: ConfiguredRoute) -> list[str]:
    """Return the variables that may hold the key; empty if none is needed or readable."""
    world, url = resolved.world, (way.route.base_url.value if way.route.base_url else None) or ""
    if way.own:
        named = way.own.block.get("key_env")
        if way.own.path[0] != "providers":
            named = named or way.own.block.get("api_key_env")
        if isinstance(named, str):
            name = named.strip()
            return [name] if _VARIABLE.fullmatch(name) and redact_for_display(name) == name else []
        if any(way.own.block.get(key) for key in ("api_key_env", "extra_headers", "api_key")):
            return []
    else:
        model = world.raw.get("model")
        block = model if isinstance(model, dict) else {}
        if world.raw.get("api_key") or block.get("key_env") or block.get("api_key_env"):
            return []
    asked = (way.route.provider or way.route.requested).value or ""
    facts = world.release.registry.get(world.release.aliases.get(asked, asked))
    if facts:
        plain = facts["kind"] == "api_key" and world.release.provider(asked) not in _LOGINS
        return list(facts["keys"]) if plain else []
    if not urls.is_public(url):
        return []
    if urls.belongs(url, "openrouter.ai"):
        return ["OPENROUTER_API_KEY"]
    return [urls.vendor_variable(url) or "OPENAI_API_KEY"]


def _has_pool(resolved: Resolved, way: ConfiguredRoute) -> bool:
    """Return whether auth.json has keys for the provider; another check examines them."""
    asked = way.route.requested.value or ""
    pool = resolved.world.store.get("credential_pool")
    name = resolved.world.release.aliases.get(asked, asked)
    return bool(isinstance(pool, dict) and (pool.get(name) or pool.get(f"custom:{name}")))


def _cause(resolved: Resolved, way: ConfiguredRoute) -> str | None:
    """Return the code of provider-known's finding if that one explains this one."""
    asked, world = (way.route.requested.value or "").lower(), resolved.world
    if not way.is_main or way.own or world.release.provider(asked) != asked:
        return None
    used = (way.route.base_url.value if way.route.base_url else None) or ""
    for provider_entry in provider_entries(world):
        addresses = [
            provider_entry.block[key]
            for key in ("api", "url", "base_url")
            if provider_entry.block.get(key)
        ]
        same = addresses and used and str(addresses[0]).rstrip("/") == used.rstrip("/")
        if provider_entry.name.strip().lower() == asked and addresses and not same:
            return "CFG-BUILTIN-NAME"
    return None


def _effect(way: ConfiguredRoute) -> str:
    return _FAILS if way.severity is Severity.ERROR else "This provider cannot be used."


def _name(way: ConfiguredRoute) -> str:
    """Return a name for display: the custom provider's, the host or the provider."""
    if way.own:
        return way.own.name
    url = way.route.base_url.value if way.route.base_url else None
    if url and way.route.requested.value in ("auto", "custom"):
        return urls.host(url)
    return (way.route.provider or way.route.requested).value or ""


def _is_none(way: ConfiguredRoute, key: Key) -> bool:
    """Return whether the value is not a key; local servers accept any placeholder."""
    url = (way.route.base_url.value if way.route.base_url else None) or ""
    nearby = bool(urls.host(url)) and not urls.is_public(url)
    return key.state == "masked" or (key.state == "placeholder" and not nearby)


def _no_key(way: ConfiguredRoute, key: Key) -> Finding:
    """Report a placeholder or masked text where the key should be."""
    masked = key.state == "masked"
    place = key.source.via or key.source
    return Finding(
        code="ENV-REDACTED" if masked else "PROVIDER-KEY",
        severity=way.severity,
        title=(
            text("{variable} is masked text, not a key", variable=redact_for_display(key.name))
            if masked
            else text(
                "{variable} is a placeholder, not a key", variable=redact_for_display(key.name)
            )
        ),
        subject=way.route.path,
        detail=_effect(way),
        evidence=(Evidence(place.place, redact_for_display(place.name)),),
        next=(
            "Restore the line from a backup, or put a new key there."
            if masked
            else "Put the real key there."
        ),
    )
