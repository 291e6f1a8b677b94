"""Check that an API key is sent complete, without extra characters, and to its own provider."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Put,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    each_once,
    likely_variable,
    listed,
    said,
    text,
    urls,
    ways,
)

_FAULTS = {
    "comment": "a comment",
    "quotes": "a stray quotation mark",
    "bearer": "the word Bearer",
    "letters": "characters that no key has",
    "name": "the name of its variable",
}
_OTHERS = {"OPENROUTER_API_KEY": "openrouter.ai", "OPENAI_API_KEY": "openai.com"}


@check(
    id="key-shape", group="configuration", codes=["CRED-SHAPE", "CRED-STRANGER"], by_release=True
)
def key_shape(probes: Probes) -> Iterator[Finding]:
    """Is each key sent complete and to its own provider?"""
    yield from each_once(_each(configured(probes)))


def _each(found: Resolved) -> Iterator[Finding]:
    """Report the mistakes of each route."""
    for way in ways(found):
        key = way.route.key
        if key and key.state == "usable" and key.faults:
            yield _damaged(way)
        elif key and key.state == "usable":
            yield from _stranger(found, way)
        elif key is None or key.state in ("missing", "not needed"):
            yield from _unread(found, way)


def _damaged(way: Way) -> Finding:
    """Report a key that is sent together with characters that are not part of it."""
    key = way.route.key
    assert key is not None
    place = key.source.via or key.source
    extra = listed([_FAULTS[fault] for fault in key.faults])
    by_hand = place.kind not in ("env", "config")
    return Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=text("{key} contains more than the key", key=said(key.name)),
        subject=way.route.path,
        detail=(
            "Every message fails: the provider rejects the key."
            if way.severity is Severity.ERROR
            else "The provider rejects the key."
        ),
        evidence=(Evidence(place.place, f"{said(place.name)} contains {extra}"),),
        fix=None if by_hand else "mend-key",
        data={"name": place.name, "kind": place.kind},
        next="Remove the entry with `hermes auth` and add the key again." if by_hand else "",
    )


def _unread(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report a key in a line of .env that python-dotenv skips."""
    named = way.own.block.get("key_env") if way.own else None
    written = found.world.readings.own.values.get(str(named)) if named else None
    if not written or str(named) in found.world.variables:
        return
    yield Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=text("Hermes skips the line of {variable} in .env", variable=said(named)),
        subject=way.route.path,
        detail=(
            "Every message fails: no key is sent to the provider."
            if way.severity is Severity.ERROR
            else "No key is sent to the provider."
        ),
        evidence=(Evidence(written.source.place, f"{said(named)}: no closing quotation mark"),),
        fix="mend-key",
        data={"name": str(named), "kind": "env"},
    )


def _stranger(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report an OpenAI or OpenRouter key that releases before 0.15 send elsewhere."""
    key, url = way.route.key, way.route.base_url
    if found.world.release.since(0, 15) or key is None or url is None:
        return
    address = url.value or ""
    if key.name not in _OTHERS or key.source.via or not urls.is_public(address):
        return
    if any(urls.belongs(address, one) for one in (*_OTHERS.values(), "azure.com")):
        return
    sure = key.name == "OPENROUTER_API_KEY" or key.vendor is not None
    name = likely_variable(found, way.own)
    yield Finding(
        code="CRED-STRANGER",
        severity=Severity.ERROR if sure else Severity.INFO,
        title=text("{key} is sent to {host}", key=key.name, host=said(urls.host(address))),
        subject=way.route.path,
        detail=(
            "This release sends it to every address for which no key is set, so another company "
            "gets your key."
        ),
        evidence=(Evidence(url.source.place, f"no key is set for {said(address)}"),),
        caused_by="CFG-KEY-ENV" if _ignores_its_key(way) else None,
        fix="name-key" if way.own and name else None,
        data={"edits": (Put((*way.own.path, "key_env"), name),) if way.own and name else ()},
        next=text(
            "Name the provider's own key with `key_env`, and renew {key} if you do not trust "
            "{host}.",
            key=key.name,
            host=said(urls.host(address)),
        ),
    )


def _ignores_its_key(way: Way) -> bool:
    """Return whether the provider names its key with `api_key_env`, which key-settings reports."""
    if way.own is None or way.own.path[0] != "providers":
        return False
    block = way.own.block
    return bool(block.get("api_key_env")) and not (block.get("key_env") or block.get("api_key"))
