"""Check that fallback providers are configured, well-formed and usable when the main one fails."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Drop,
    Edit,
    Evidence,
    Finding,
    Misshapen,
    Probes,
    Put,
    Resolved,
    Severity,
    Way,
    bare,
    check,
    configured,
    is_unset,
    own_providers,
    said,
    sentences,
    shapes,
    spelling,
    text,
    users,
    ways,
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
    found = configured(probes)
    misshapen = list(shapes.chain(found.world))
    for one in misshapen:
        yield _shape(found, one)
    main, *links = ways(found)
    for way in links:
        yield from _dead(probes, found, main, way)
    if not links and not misshapen:
        yield from _none(found, main)


def _needed(found: Resolved) -> bool:
    key = found.main.key
    return found.main.trouble is not None or (key is not None and key.state in _LACKING)


def _shape(found: Resolved, one: Misshapen) -> Finding:
    path = ".".join(map(str, one.path))
    edits: tuple[Edit, ...] = ()
    if one.value is not None:
        edits = (Put(one.moved or one.path, bare(one.value)),)
        edits += (Drop(one.path),) if one.moved else ()
    return Finding(
        code="CFG-FALLBACK-STR",
        severity=Severity.ERROR if _needed(found) else Severity.WARNING,
        title=text("Hermes ignores the fallback in {path}", path=path),
        subject=path,
        detail="If the main model fails, this fallback does not answer instead.",
        evidence=(Evidence(found.world.document.source(*one.path).place, f"{path} {one.what}"),),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else "Write `fallback_providers:` as a list; each item needs `provider` and `model`.",
    )


def _surely(probes: Probes, found: Resolved, way: Way) -> bool:
    """Return whether the key of this entry is certainly unset, also in the gateway's service."""
    name = found.world.release.provider((way.route.requested.value or "").lower()) or ""
    facts = found.world.release.registry.get(name)
    login = name in ("anthropic", "copilot")  # their login may be outside the home
    return bool(facts and not login and is_unset(probes, *facts["keys"]))


def _dead(probes: Probes, found: Resolved, main: Way, way: Way) -> Iterator[Finding]:
    """Report a fallback that cannot work, or that repeats the main model."""
    route, name = way.route, said(way.route.requested.value)
    trouble = route.trouble
    if trouble and trouble.kind == "key" and not _surely(probes, found, way):
        yield _finding(
            found,
            way,
            Severity.INFO,
            text("no key for the fallback {provider} was found", provider=name),
            detail="The fallback works only if a service gives the key to the gateway.",
            step="Put the key of this provider into .env.",
        )
    elif trouble and trouble.kind == "unknown":
        meant = spelling.meant(found.world, route.requested.value or "")
        cause = text("Hermes skips it when the main model fails.")
        guess = text('Did you mean "{meant}"?', meant=said(meant)) if meant else ""
        yield _finding(
            found,
            way,
            way.severity,
            text('unknown provider "{provider}" in a fallback', provider=name),
            detail=sentences(cause, guess),
            edits=(Put(way.provider, meant),) if meant else (),
        )
    elif trouble and trouble.kind != "login":
        yield _finding(
            found,
            way,
            way.severity,
            text("the fallback {provider} cannot be used", provider=name),
            reason=said(trouble.why),
        )
    elif not trouble and _same(main, way):
        if _needed(found):
            yield _finding(
                found,
                way,
                way.severity,
                text("the fallback {provider} fails like the main model", provider=name),
                detail="It uses the same address and the same key, which do not work.",
            )
        elif route.model.value == main.route.model.value:
            yield _finding(
                found,
                way,
                Severity.INFO,
                text("the fallback {provider} is the main model again", provider=name),
                detail="It cannot help when the main model fails.",
            )


def _finding(
    found: Resolved,
    way: Way,
    severity: Severity,
    title: str,
    *,
    detail: str = "Hermes skips it when the main model fails.",
    reason: str = "",
    edits: tuple[Edit, ...] = (),
    step: str = "Choose another provider for this fallback.",
) -> Finding:
    name = said(way.route.requested.value)
    return Finding(
        code="CFG-FALLBACK-DEAD",
        severity=severity,
        title=title,
        subject=way.route.path,
        detail=detail,
        evidence=(
            Evidence(
                found.world.document.source(*way.provider).place, reason or f"provider: {name}"
            ),
        ),
        fix="correct-provider" if edits else None,
        data={"edits": edits},
        next="" if edits else step,
    )


def _same(main: Way, way: Way) -> bool:
    """Return whether both use the same address and the same key."""
    one, other = main.route, way.route
    if one.trouble or not one.base_url or not other.base_url:
        return False
    same_key = (one.key and one.key.fingerprint) == (other.key and other.key.fingerprint)
    return same_key and one.base_url.value == other.base_url.value


def _none(found: Resolved, main: Way) -> Iterator[Finding]:
    """Report that there is no fallback, with a configured provider that could be one."""
    if not found.world.raw:
        return  # no settings yet
    able = [
        one
        for one in own_providers(found.world)
        if users(found, one) is Severity.INFO
        and not (main.own and main.own.path == one.path)
        and any(one.block.get(key) for key in ("base_url", "url", "api"))
    ]
    yield Finding(
        code="CFG-FALLBACK-NONE",
        severity=Severity.INFO,
        title="no fallback is set for when the provider fails",
        subject="fallback_providers",
        detail=text(
            "{provider} is set up but not used; it could be the fallback.",
            provider=said(able[0].name),
        )
        if able
        else "If the provider fails, Hermes sends its error as the answer.",
        evidence=(Evidence("config.yaml", "no fallback_providers"),),
        next="Add it to `fallback_providers:` in config.yaml, with `provider` and `model`."
        if able
        else "Add a second provider to `fallback_providers:` in config.yaml if you want one.",
    )
