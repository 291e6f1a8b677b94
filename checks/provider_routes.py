"""Check that the models and fallbacks belong to providers that Hermes knows."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Drop, Edit, Put
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Resolved,
    is_unset,
    provider_entries,
    redact_for_display,
    resolved_or_skip,
    routes,
    severity_if_broken,
    to_plain_types,
)
from hermes_doctor.api.settings import WrongShape, misspellings, provider_mistakes
from hermes_doctor.api.tools import NamedTuple, sentences


@check(
    id="provider-known",
    group="configuration",
    codes=["CFG-PROVIDER-UNKNOWN", "CFG-BUILTIN-NAME"],
    by_release=True,
)
def provider_known(probes: Probes) -> Iterator[Finding]:
    """Does this release know the provider?"""
    resolved = resolved_or_skip(probes)
    main = routes(resolved)[0]
    trouble = main.route.trouble
    if trouble and trouble.kind in ("unknown", "disabled"):
        yield _unknown(resolved, main, trouble.kind)
    elif not trouble or trouble.kind in ("key", "login"):
        yield from _hidden(resolved, main)


def _unknown(resolved: Resolved, way: ConfiguredRoute, kind: str) -> Finding:
    asked = way.route.requested
    word = asked.value or ""
    advice = _advice(resolved, way, word, kind)
    chosen = asked.source.kind in ("env", "process")
    bare = word.removeprefix("custom:")
    lost = any(
        bare in map(str.lower, shape.names)
        for shape in provider_mistakes.misshapen_providers(resolved.world)
    )
    bridged = resolved.used is not None
    return Finding(
        code="CFG-PROVIDER-UNKNOWN",
        severity=Severity.WARNING if bridged else Severity.CRITICAL,
        title=(
            text('the provider "{provider}" is switched off', provider=redact_for_display(word))
            if kind == "disabled"
            else text('unknown provider "{provider}"', provider=redact_for_display(word))
        ),
        subject="model.provider",
        detail=sentences(
            "A fallback answers instead." if bridged else "Every message fails.", advice.cause
        ),
        evidence=(
            Evidence(
                asked.source.place,
                f"{redact_for_display(asked.source.name)}: {redact_for_display(word)}",
            ),
        ),
        caused_by="CFG-PROVIDERS-SHAPE" if lost else None,
        fix="correct-provider" if advice.edits and not chosen else None,
        data={"edits": advice.edits},
        next=(
            text("Change {setting}.", setting=redact_for_display(asked.source.name))
            if advice.edits and chosen
            else ""
            if advice.edits
            else advice.step
        ),
    )


class _Advice(NamedTuple):
    """What is wrong with the name of a provider, and how to correct it."""

    cause: str
    edits: tuple[Edit, ...] = ()
    step: str = "Choose another provider with `hermes model`."


def _advice(resolved: Resolved, way: ConfiguredRoute, word: str, kind: str) -> _Advice:
    world = resolved.world
    if kind == "disabled":
        setting = text(
            "`providers.{provider}.enabled` is false.", provider=redact_for_display(word)
        )
        return _Advice(setting, (Put(("providers", word, "enabled"), True),))
    if word == "openai":
        return _openai(resolved, way)
    bare = word.removeprefix("custom:")
    entry = next(
        (
            provider_entry
            for provider_entry in provider_entries(world)
            if provider_entry.name.lower() == bare
        ),
        None,
    )
    if entry is not None:
        return _Advice(
            text(
                "`{path}` has no base_url.", path=redact_for_display(".".join(map(str, entry.path)))
            ),
            step="Add its address there, as `base_url`.",
        )
    gone = misspellings.releases_with_provider(world, word)
    if gone:
        return _Advice(
            text("Hermes knows it only from {first} to {last}.", first=gone.first, last=gone.last)
        )
    meant = misspellings.meant_provider(world, word)
    if meant:
        return _Advice(
            text('Did you mean "{provider}"?', provider=redact_for_display(meant)),
            (Put(way.provider, meant),),
        )
    url = misspellings.OTHER_PROVIDERS.get(bare)
    if url:
        return _Advice(
            "Hermes has no entry for it.",
            step=text(
                "Add `{name}:` under `providers:`, with `base_url: {address}` and "
                "`key_env: {variable}`.",
                name=bare,
                address=url,
                variable=f"{bare.upper()}_API_KEY",
            ),
        )
    return _Advice(
        "Hermes has no entry for it.",
        step="Add it under `providers:` with a base_url, or choose one with `hermes model`.",
    )


def _openai(resolved: Resolved, way: ConfiguredRoute) -> _Advice:
    """Return the advice for OpenAI's own API, which older releases have no name for."""
    if resolved.world.release.provider("openai-api"):
        return _Advice(
            "Hermes calls OpenAI's own API `openai-api`.", (Put(way.provider, "openai-api"),)
        )
    url = misspellings.OTHER_PROVIDERS["openai"]
    edits = (Put(way.provider, "custom"), Put((*way.provider[:-1], "base_url"), url))
    return _Advice(
        text(
            "This release needs `provider: custom` and `base_url: {address}` for OpenAI.",
            address=url,
        ),
        edits,
    )


def _hidden(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a custom provider that is ignored because a built-in one has the same name."""
    asked, url = (way.route.requested.value or "").lower(), way.route.base_url
    if way.own or resolved.world.release.provider(asked) != asked:
        return
    named = [
        provider_entry
        for provider_entry in provider_entries(resolved.world)
        if provider_entry.name.strip().lower() == asked
    ]
    for entry in named:
        urls = [entry.block[key] for key in ("api", "url", "base_url") if entry.block.get(key)]
        if not urls or (url and str(urls[0]).rstrip("/") == str(url.value).rstrip("/")):
            continue
        word = entry.word(resolved.world)
        yield Finding(
            code="CFG-BUILTIN-NAME",
            severity=way.severity if way.route.trouble else Severity.WARNING,
            title=text(
                'Hermes ignores your provider "{provider}"', provider=redact_for_display(asked)
            ),
            subject=".".join(map(str, entry.path)),
            detail=text(
                "Hermes uses its own provider of that name. The name of yours is `{name}`.",
                name=redact_for_display(word),
            ),
            evidence=(
                Evidence(
                    resolved.world.document.source(*entry.path).place,
                    f"ignored: {redact_for_display(urls[0])}",
                ),
                Evidence(
                    way.route.requested.source.place,
                    f"used: {redact_for_display(url.value)}"
                    if url
                    else f"provider: {redact_for_display(asked)}",
                ),
            ),
            fix="correct-provider",
            data={"edits": (Put(way.provider, word),)},
        )


_LACKING = ("missing", "placeholder", "masked")


@check(
    id="fallback-chain",
    group="configuration",
    codes=["CFG-FALLBACK-STR", "CFG-FALLBACK-DEAD", "CFG-FALLBACK-NONE"],
    by_release=True,
)
def fallback_chain(probes: Probes) -> Iterator[Finding]:
    """Does a usable fallback exist if the provider fails?"""
    resolved = resolved_or_skip(probes)
    misshapen = list(provider_mistakes.misshapen_fallbacks(resolved.world))
    for wrong_shape in misshapen:
        yield _shape(resolved, wrong_shape)
    main, *links = routes(resolved)
    for way in links:
        yield from _dead(probes, resolved, main, way)
    if not links and not misshapen:
        yield from _none(resolved, main)


def _needed(resolved: Resolved) -> bool:
    key = resolved.main.key
    return resolved.main.trouble is not None or (key is not None and key.state in _LACKING)


def _shape(resolved: Resolved, wrong_shape: WrongShape) -> Finding:
    path = ".".join(map(str, wrong_shape.path))
    edits: tuple[Edit, ...] = ()
    if wrong_shape.value is not None:
        edits = (Put(wrong_shape.moved or wrong_shape.path, to_plain_types(wrong_shape.value)),)
        edits += (Drop(wrong_shape.path),) if wrong_shape.moved else ()
    return Finding(
        code="CFG-FALLBACK-STR",
        severity=Severity.ERROR if _needed(resolved) else Severity.WARNING,
        title=text("Hermes ignores the fallback in {path}", path=path),
        subject=path,
        detail="If the main model fails, this fallback does not answer instead.",
        evidence=(
            Evidence(
                resolved.world.document.source(*wrong_shape.path).place,
                f"{path} {wrong_shape.what}",
            ),
        ),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else "Write `fallback_providers:` as a list; each item needs `provider` and `model`.",
    )


def _surely(probes: Probes, resolved: Resolved, way: ConfiguredRoute) -> bool:
    """Return whether the key of this entry is certainly unset, also in the gateway's service."""
    name = resolved.world.release.provider((way.route.requested.value or "").lower()) or ""
    facts = resolved.world.release.registry.get(name)
    login = name in ("anthropic", "copilot")  # their login may be outside the home
    return bool(facts and not login and is_unset(probes, *facts["keys"]))


def _dead(
    probes: Probes, resolved: Resolved, main: ConfiguredRoute, way: ConfiguredRoute
) -> Iterator[Finding]:
    """Report a fallback that cannot work, or that repeats the main model."""
    route, name = way.route, redact_for_display(way.route.requested.value)
    trouble = route.trouble
    if trouble and trouble.kind == "key" and not _surely(probes, resolved, way):
        yield _finding(
            resolved,
            way,
            Severity.INFO,
            text("no key for the fallback {provider} was found", provider=name),
            detail="The fallback works only if a service gives the key to the gateway.",
            step="Put the key of this provider into .env.",
        )
    elif trouble and trouble.kind == "unknown":
        meant = misspellings.meant_provider(resolved.world, route.requested.value or "")
        cause = text("Hermes skips it when the main model fails.")
        guess = text('Did you mean "{meant}"?', meant=redact_for_display(meant)) if meant else ""
        yield _finding(
            resolved,
            way,
            way.severity,
            text('unknown provider "{provider}" in a fallback', provider=name),
            detail=sentences(cause, guess),
            edits=(Put(way.provider, meant),) if meant else (),
        )
    elif trouble and trouble.kind != "login":
        yield _finding(
            resolved,
            way,
            way.severity,
            text("the fallback {provider} cannot be used", provider=name),
            reason=redact_for_display(trouble.why),
        )
    elif not trouble and _same(main, way):
        if _needed(resolved):
            yield _finding(
                resolved,
                way,
                way.severity,
                text("the fallback {provider} fails like the main model", provider=name),
                detail="It uses the same address and the same key, which do not work.",
            )
        elif route.model.value == main.route.model.value:
            yield _finding(
                resolved,
                way,
                Severity.INFO,
                text("the fallback {provider} is the main model again", provider=name),
                detail="It cannot help when the main model fails.",
            )


def _finding(
    resolved: Resolved,
    way: ConfiguredRoute,
    severity: Severity,
    title: str,
    *,
    detail: str = "Hermes skips it when the main model fails.",
    reason: str = "",
    edits: tuple[Edit, ...] = (),
    step: str = "Choose another provider for this fallback.",
) -> Finding:
    name = redact_for_display(way.route.requested.value)
    return Finding(
        code="CFG-FALLBACK-DEAD",
        severity=severity,
        title=title,
        subject=way.route.path,
        detail=detail,
        evidence=(
            Evidence(
                resolved.world.document.source(*way.provider).place, reason or f"provider: {name}"
            ),
        ),
        fix="correct-provider" if edits else None,
        data={"edits": edits},
        next="" if edits else step,
    )


def _same(main: ConfiguredRoute, way: ConfiguredRoute) -> bool:
    """Return whether both use the same address and the same key."""
    route, other = main.route, way.route
    if route.trouble or not route.base_url or not other.base_url:
        return False
    same_key = (route.key and route.key.fingerprint) == (other.key and other.key.fingerprint)
    return same_key and route.base_url.value == other.base_url.value


def _none(resolved: Resolved, main: ConfiguredRoute) -> Iterator[Finding]:
    """Report that there is no fallback, with a configured provider that could be one."""
    if not resolved.world.raw:
        return  # no settings yet
    able = [
        provider_entry
        for provider_entry in provider_entries(resolved.world)
        if severity_if_broken(resolved, provider_entry) is Severity.INFO
        and not (main.own and main.own.path == provider_entry.path)
        and any(provider_entry.block.get(key) for key in ("base_url", "url", "api"))
    ]
    yield Finding(
        code="CFG-FALLBACK-NONE",
        severity=Severity.INFO,
        title="no fallback is set for when the provider fails",
        subject="fallback_providers",
        detail=text(
            "{provider} is set up but not used; it could be the fallback.",
            provider=redact_for_display(able[0].name),
        )
        if able
        else "If the provider fails, Hermes sends its error as the answer.",
        evidence=(Evidence("config.yaml", "no fallback_providers"),),
        next="Add it to `fallback_providers:` in config.yaml, with `provider` and `model`."
        if able
        else "Add a second provider to `fallback_providers:` in config.yaml if you want one.",
    )
