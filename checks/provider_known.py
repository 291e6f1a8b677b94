"""Check that the provider in config.yaml is known to this release of Hermes."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Edit,
    Evidence,
    Finding,
    NamedTuple,
    Probes,
    Put,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    own_providers,
    said,
    sentences,
    shapes,
    spelling,
    text,
    ways,
)


@check(
    id="provider-known",
    group="configuration",
    codes=["CFG-PROVIDER-UNKNOWN", "CFG-BUILTIN-NAME"],
    by_release=True,
)
def provider_known(probes: Probes) -> Iterator[Finding]:
    """Does this release know the provider?"""
    found = configured(probes)
    main = ways(found)[0]
    trouble = main.route.trouble
    if trouble and trouble.kind in ("unknown", "disabled"):
        yield _unknown(found, main, trouble.kind)
    elif not trouble or trouble.kind in ("key", "login"):
        yield from _hidden(found, main)


def _unknown(found: Resolved, way: Way, kind: str) -> Finding:
    asked = way.route.requested
    word = asked.value or ""
    advice = _advice(found, way, word, kind)
    chosen = asked.source.kind in ("env", "process")
    bare = word.removeprefix("custom:")
    lost = any(bare in map(str.lower, one.names) for one in shapes.providers(found.world))
    bridged = found.used is not None
    return Finding(
        code="CFG-PROVIDER-UNKNOWN",
        severity=Severity.WARNING if bridged else Severity.CRITICAL,
        title=(
            text('the provider "{provider}" is switched off', provider=said(word))
            if kind == "disabled"
            else text('unknown provider "{provider}"', provider=said(word))
        ),
        subject="model.provider",
        detail=sentences(
            "A fallback answers instead." if bridged else "Every message fails.", advice.cause
        ),
        evidence=(Evidence(asked.source.place, f"{said(asked.source.name)}: {said(word)}"),),
        caused_by="CFG-PROVIDERS-SHAPE" if lost else None,
        fix="correct-provider" if advice.edits and not chosen else None,
        data={"edits": advice.edits},
        next=(
            text("Change {setting}.", setting=said(asked.source.name))
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


def _advice(found: Resolved, way: Way, word: str, kind: str) -> _Advice:
    world = found.world
    if kind == "disabled":
        setting = text("`providers.{provider}.enabled` is false.", provider=said(word))
        return _Advice(setting, (Put(("providers", word, "enabled"), True),))
    if word == "openai":
        return _openai(found, way)
    bare = word.removeprefix("custom:")
    entry = next((one for one in own_providers(world) if one.name.lower() == bare), None)
    if entry is not None:
        return _Advice(
            text("`{path}` has no base_url.", path=said(".".join(map(str, entry.path)))),
            step="Add its address there, as `base_url`.",
        )
    gone = spelling.elsewhere(world, word)
    if gone:
        return _Advice(
            text("Hermes knows it only from {first} to {last}.", first=gone.first, last=gone.last)
        )
    meant = spelling.meant(world, word)
    if meant:
        return _Advice(
            text('Did you mean "{provider}"?', provider=said(meant)), (Put(way.provider, meant),)
        )
    url = spelling.ADDRESSES.get(bare)
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


def _openai(found: Resolved, way: Way) -> _Advice:
    """Return the advice for OpenAI's own API, which older releases have no name for."""
    if found.world.release.provider("openai-api"):
        return _Advice(
            "Hermes calls OpenAI's own API `openai-api`.", (Put(way.provider, "openai-api"),)
        )
    url = spelling.ADDRESSES["openai"]
    edits = (Put(way.provider, "custom"), Put((*way.provider[:-1], "base_url"), url))
    return _Advice(
        text(
            "This release needs `provider: custom` and `base_url: {address}` for OpenAI.",
            address=url,
        ),
        edits,
    )


def _hidden(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report a custom provider that is ignored because a built-in one has the same name."""
    asked, url = (way.route.requested.value or "").lower(), way.route.base_url
    if way.own or found.world.release.provider(asked) != asked:
        return
    named = [one for one in own_providers(found.world) if one.name.strip().lower() == asked]
    for entry in named:
        urls = [entry.block[key] for key in ("api", "url", "base_url") if entry.block.get(key)]
        if not urls or (url and str(urls[0]).rstrip("/") == str(url.value).rstrip("/")):
            continue
        word = entry.word(found.world)
        yield Finding(
            code="CFG-BUILTIN-NAME",
            severity=way.severity if way.route.trouble else Severity.WARNING,
            title=text('Hermes ignores your provider "{provider}"', provider=said(asked)),
            subject=".".join(map(str, entry.path)),
            detail=text(
                "Hermes uses its own provider of that name. The name of yours is `{name}`.",
                name=said(word),
            ),
            evidence=(
                Evidence(
                    found.world.document.source(*entry.path).place, f"ignored: {said(urls[0])}"
                ),
                Evidence(
                    way.route.requested.source.place,
                    f"used: {said(url.value)}" if url else f"provider: {said(asked)}",
                ),
            ),
            fix="correct-provider",
            data={"edits": (Put(way.provider, word),)},
        )
