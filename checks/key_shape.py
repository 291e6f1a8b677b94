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
    likely_variable,
    said,
    text,
    urls,
    ways,
)

_FAULTS = {
    "comment": "a comment after it",
    "quotes": "a stray quote",
    "bearer": "the word Bearer before it",
    "letters": "letters that no key has",
    "name": "the name of its variable",
}
_OTHERS = {"OPENROUTER_API_KEY": "openrouter.ai", "OPENAI_API_KEY": "openai.com"}


@check(
    id="key-shape", group="configuration", codes=["CRED-SHAPE", "CRED-STRANGER"], by_release=True
)
def key_shape(probes: Probes) -> Iterator[Finding]:
    """Is the key alone what goes out, and to whom it belongs?"""
    found = configured(probes)
    for way in ways(found):
        key = way.route.key
        if key and key.state == "usable" and key.faults:
            yield _unwhole(way)
        elif key and key.state == "usable":
            yield from _stranger(found, way)
        elif key is None or key.state in ("missing", "not needed"):
            yield from _unread(found, way)


def _unwhole(way: Way) -> Finding:
    """Report a key that is sent together with characters that are not part of it."""
    key = way.route.key
    assert key is not None
    place = key.source.via or key.source
    what = " and ".join(_FAULTS[fault] for fault in key.faults)
    by_hand = place.kind not in ("env", "config")
    return Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=text("{key} is sent with {what}", key=said(key.name), what=what),
        subject=way.route.path,
        detail=(
            "The provider refuses it. Only the key itself belongs there."
            + (" Take the entry out with `hermes auth` and add it anew." if by_hand else "")
        ),
        evidence=(Evidence(place.place, f"{said(place.name)} holds {what}"),),
        fix=None if by_hand else "mend-key",
        data={"name": place.name, "kind": place.kind},
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
        title=text("{named} is in .env, in a line that Hermes cannot read", named=said(named)),
        subject=way.route.path,
        detail="A quote that is not closed makes it skip the line. Only the key belongs there.",
        evidence=(Evidence(written.source.place, f"the line of {said(named)}"),),
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
            "This release hands it to any address that has no key of its own. Name that "
            "provider's own key with `key_env`, and renew this one if it went to a stranger."
        ),
        evidence=(Evidence(url.source.place, f"{said(address)} has no key of its own"),),
        caused_by="CFG-KEY-ENV" if way.own and way.own.block.get("api_key_env") else None,
        fix="name-key" if way.own and name else None,
        data={"edits": (Put((*way.own.path, "key_env"), name),) if way.own and name else ()},
    )
