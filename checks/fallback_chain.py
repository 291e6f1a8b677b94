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
    """Is there another way when the first provider fails?"""
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
        title=text("{path} {what}, so Hermes passes it over", path=path, what=one.what),
        subject=path,
        detail=(
            "The chain is a list at the top of config.yaml, `fallback_providers:`, and each item "
            "has a `provider` and a `model`."
        ),
        evidence=(Evidence(found.world.document.source(*one.path).place, one.what),),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
    )


def _surely(probes: Probes, found: Resolved, way: Way) -> bool:
    """Return whether the key of this entry is certainly unset, also in the gateway's service."""
    name = found.world.release.provider((way.route.requested.value or "").lower()) or ""
    facts = found.world.release.registry.get(name)
    login = name in ("anthropic", "copilot")  # their login may be outside the home
    return bool(facts and not login and is_unset(probes, *facts["keys"]))


def _dead(probes: Probes, found: Resolved, main: Way, way: Way) -> Iterator[Finding]:
    """Report a fallback that cannot work, or that repeats the main model."""
    route = way.route
    why: str | None = None
    edits: tuple[Edit, ...] = ()
    if route.trouble and route.trouble.kind != "login":
        why = said(route.trouble.why)
        meant = spelling.meant(found.world, route.requested.value or "")
        if route.trouble.kind == "key" and not _surely(probes, found, way):
            yield _finding(found, way, why, Severity.INFO, ())
            return
        if route.trouble.kind == "unknown" and meant:
            edits = (Put(way.provider, meant),)
            why += f"; perhaps {said(meant)} is meant"
    elif _same(main, way):
        why = "it goes the same way with the same key as the main model, which does not work"
        if not _needed(found):
            if route.model.value == main.route.model.value:
                yield _finding(found, way, "it is the main model once more", Severity.INFO, ())
            return
    if why:
        yield _finding(found, way, why, way.severity, edits)


def _finding(
    found: Resolved, way: Way, why: str, severity: Severity, edits: tuple[Edit, ...]
) -> Finding:
    return Finding(
        code="CFG-FALLBACK-DEAD",
        severity=severity,
        title=text(
            "the fallback {requested} is of no use: {why}",
            requested=said(way.route.requested.value),
            why=why,
        ),
        subject=way.route.path,
        detail="Hermes passes it over when it is needed. Name another provider there.",
        evidence=(
            Evidence(
                found.world.document.source(*way.provider).place,
                f"the provider is {said(way.route.requested.value)}",
            ),
        ),
        fix="correct-provider" if edits else None,
        data={"edits": edits},
    )


def _same(main: Way, way: Way) -> bool:
    """Return whether both use the same address and the same key."""
    one, other = main.route, way.route
    if one.trouble or not one.base_url or not other.base_url:
        return False
    same_key = (one.key and one.key.fingerprint) == (other.key and other.key.fingerprint)
    return same_key and one.base_url.value == other.base_url.value


def _none(found: Resolved, main: Way) -> Iterator[Finding]:
    """Report a missing fallback if an unused provider is configured that could be one."""
    able = [
        one
        for one in own_providers(found.world)
        if users(found, one) is Severity.INFO
        and not (main.own and main.own.path == one.path)
        and any(one.block.get(key) for key in ("base_url", "url", "api"))
    ]
    if not able:
        return
    yield Finding(
        code="CFG-FALLBACK-NONE",
        severity=Severity.INFO,
        title="there is no fallback: when the provider fails, users get its error",
        subject="fallback_providers",
        detail=(
            text(
                "{able} is set up and could be one: add it to config.yaml under "
                "`fallback_providers:`, with `provider` and `model`.",
                able=said(able[0].name),
            )
        ),
        evidence=(Evidence("config.yaml", "no fallback_providers"),),
    )
