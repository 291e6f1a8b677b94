"""Check that the provider in config.yaml is known to this release of Hermes."""

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
    own_providers,
    said,
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
    """Is the provider in config.yaml one that this release knows?"""
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
    edits, advice = _advice(found, way, word, kind)
    chosen = asked.source.kind in ("env", "process")
    bare = word.removeprefix("custom:")
    lost = any(bare in map(str.lower, one.names) for one in shapes.providers(found.world))
    stands_in = found.used is not None
    return Finding(
        code="CFG-PROVIDER-UNKNOWN",
        severity=Severity.WARNING if stands_in else Severity.CRITICAL,
        title=(
            text("the provider {word} is switched off", word=said(word))
            if kind == "disabled"
            else text("no provider is called {word}", word=said(word))
        )
        + (", so a fallback answers" if stands_in else ", so nobody gets an answer"),
        subject="model.provider",
        detail=advice,
        evidence=(Evidence(asked.source.place, f"{said(asked.source.name)} is {said(word)}"),),
        caused_by="CFG-PROVIDERS-SHAPE" if lost else None,
        fix="correct-provider" if edits and not chosen else None,
        data={"edits": edits},
    )


def _advice(found: Resolved, way: Way, word: str, kind: str) -> tuple[tuple[Edit, ...], str]:
    """Return the edits that name a known provider, if there are any, and the advice as text."""
    world = found.world
    if kind == "disabled":
        path = ("providers", word, "enabled")
        return (
            Put(path, True),
        ), f"Set `providers.{said(word)}.enabled` to true, or choose another."
    if word == "openai":
        return _openai(found, way)
    bare = word.removeprefix("custom:")
    entry = next((one for one in own_providers(world) if one.name.lower() == bare), None)
    if entry is not None:
        return (
            (),
            f"`{said('.'.join(map(str, entry.path)))}` has no base_url: add the address there.",
        )
    gone = spelling.elsewhere(world, word)
    if gone:
        told = f"Hermes has it from {gone.first} to {gone.last}"
        return (), f"{told}, and this release does not. Choose another with `hermes model`."
    meant = spelling.meant(world, word)
    if meant:
        return (Put(way.provider, meant),), f"Perhaps {said(meant)} is meant."
    url = spelling.ADDRESSES.get(bare)
    if url:
        return (), (
            f"Hermes has no entry for it. Add under `providers:` the lines `{bare}:`, "
            f"`base_url: {url}` and `key_env: {bare.upper()}_API_KEY`."
        )
    return (), "Define it under `providers:` with a base_url, or choose one with `hermes model`."


def _openai(found: Resolved, way: Way) -> tuple[tuple[Edit, ...], str]:
    """Return edits and advice for OpenAI's own API, which older releases have no name for."""
    if found.world.release.provider("openai-api"):
        return (Put(way.provider, "openai-api"),), "OpenAI's own API is called `openai-api` here."
    url = spelling.ADDRESSES["openai"]
    edits = (Put(way.provider, "custom"), Put((*way.provider[:-1], "base_url"), url))
    return edits, f"This release reaches OpenAI by `provider: custom` and `base_url: {url}`."


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
        goes_to = f"Messages go to {said(url.value)}, not to {said(urls[0])}. " if url else ""
        yield Finding(
            code="CFG-BUILTIN-NAME",
            severity=way.severity if way.route.trouble else Severity.WARNING,
            title=text(
                "your entry {asked} is not used: Hermes has one of that name itself",
                asked=said(asked),
            ),
            subject=".".join(map(str, entry.path)),
            detail=(
                text(
                    "{goes_to}Write `provider: {word}` to mean your entry, or take it out.",
                    goes_to=goes_to,
                    word=said(word),
                )
            ),
            evidence=(
                Evidence(found.world.document.source(*entry.path).place, "it is defined here"),
                Evidence(way.route.requested.source.place, f"the provider is {said(asked)}"),
            ),
            fix="correct-provider",
            data={"edits": (Put(way.provider, word),)},
        )
