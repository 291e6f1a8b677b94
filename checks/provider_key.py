"""The key that goes out with a message must be one, be whole, and go where it belongs."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Edit,
    Evidence,
    Finding,
    Key,
    Probes,
    Put,
    Resolved,
    Route,
    Severity,
    Source,
    Way,
    check,
    configured,
    is_unset,
    own_providers,
    pattern,
    said,
    urls,
    variable,
    ways,
)

_FAULTS = {
    "comment": "a comment after it",
    "quotes": "a stray quote",
    "bearer": "the word Bearer before it",
    "letters": "letters that no key has",
    "name": "the name of its variable",
}
_VARIABLE = pattern(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMING = ("key_env", "api_key", "api_key_env")
_OTHERS = {"OPENROUTER_API_KEY": "openrouter.ai", "OPENAI_API_KEY": "openai.com"}


@check(
    id="provider-key",
    group="configuration",
    codes=["PROVIDER-KEY", "ENV-REDACTED", "CRED-SHAPE", "CRED-STRANGER"],
)
def provider_key(probes: Probes) -> Iterator[Finding]:
    """Does a usable key go out with the next message?"""
    found = configured(probes)
    for way in ways(found):
        key, trouble = way.route.key, way.route.trouble
        if key is None:
            if way.is_main and trouble and trouble.kind in ("key", "none"):
                yield from _missing(probes, found, way)
        elif key.state in ("missing", "not needed"):
            yield from _missing(probes, found, way)
        elif key.state in ("placeholder", "masked"):
            yield _no_key(way, key)
        elif key.state == "usable":
            if key.faults:
                yield _unwhole(way)
            yield from _stranger(found, way)


def _missing(probes: Probes, found: Resolved, way: Way) -> Iterator[Finding]:
    """Nothing that Hermes would take for a key is set."""
    if way.route.trouble and way.route.trouble.kind == "none":
        names = ["OPENROUTER_API_KEY"]
        tokens = [token.state for one in found.platforms for token in one.tokens]
        if "usable" not in tokens:
            return  # nobody has set this home up yet
        title = "no provider is set up, so nobody gets an answer"
        detail = "Choose one with `hermes model`, or put its key into .env."
    else:
        names = _names(found, way)
        if not names:
            return
        title = f"no key for {said(_name(way))} is set"
        detail = f"Put {said(names[0])}=… into .env."
    for name in names:
        unread = found.world.readings.own.values.get(name)
        if unread and name not in found.world.variables:
            yield _unread(way, unread.source)
            return
        key = variable(found, name)
        if key.state in ("placeholder", "masked"):
            yield _no_key(way, key)
            return
    unset = is_unset(probes, *names)
    if unset is False or _has_pool(found, way):
        return
    edits = _named_like_it(found, way)
    if edits:
        detail = f"{said(edits[0].value)} is set: name it as `key_env` of this provider."
    if unset is None:
        detail += " A service that is not known here may give it to the gateway, too."
    written = found.world.readings.dotenv.values.get(names[0])
    source = written.source if written is not None else way.route.requested.source
    yield Finding(
        code="PROVIDER-KEY",
        severity=way.severity if unset else Severity.INFO,
        title=title,
        subject=way.route.path,
        detail=detail,
        evidence=(Evidence(source.place, f"{said(' and '.join(names))} not set"),),
        caused_by=_cause(found, way),
        fix="name-key" if edits else None,
        data={"edits": edits},
    )


def _cause(found: Resolved, way: Way) -> str | None:
    """The finding of another check that this is a consequence of."""
    asked = (way.route.requested.value or "").lower()
    hidden = any(one.name.strip().lower() == asked for one in own_providers(found.world))
    return "CFG-BUILTIN-NAME" if hidden and not way.own else None


def _name(way: Way) -> str:
    """What people call it: the operator's name, the provider, or the host."""
    if way.own:
        return way.own.name
    url = way.route.base_url.value if way.route.base_url else None
    if url and way.route.requested.value in ("auto", "custom"):
        return urls.host(url)
    return (way.route.provider or way.route.requested).value or ""


def _names(found: Resolved, way: Way) -> list[str]:
    """The variables that could hold the key; none where no key is needed."""
    if way.own:
        named = way.own.block.get("key_env")
        listed = way.own.block.get("api_key_env") if way.own.path[0] != "providers" else None
        if isinstance(named or listed, str):
            name = str(named or listed).strip()
            return [name] if _VARIABLE.fullmatch(name) and said(name) == name else []
        wrong = way.own.block.get("api_key_env") or way.own.block.get("extra_headers")
        if wrong or way.own.block.get("api_key"):
            return []
    model = found.world.raw.get("model")
    if not way.own and found.world.raw.get("api_key"):
        return []
    if not way.own and isinstance(model, dict) and model.get("key_env", model.get("api_key_env")):
        return []
    url = way.route.base_url
    asked = (way.route.provider or way.route.requested).value or ""
    facts = found.world.release.registry.get(found.world.release.aliases.get(asked, asked))
    if facts:
        return list(facts["keys"]) if facts["kind"] == "api_key" and asked != "lmstudio" else []
    if url is None or not urls.is_public(url.value or ""):
        return []
    if urls.belongs(url.value or "", "openrouter.ai"):
        return ["OPENROUTER_API_KEY"]
    name = way.own.name if way.own else ""
    word = "".join(char if char.isalnum() else "_" for char in name).upper()
    return [f"{word}_API_KEY" if word else urls.vendor_variable(url.value or "") or "API_KEY"]


def _has_pool(found: Resolved, way: Way) -> bool:
    """Whether auth.json has entries for it: that is another question."""
    asked = way.route.requested.value or ""
    pool = found.world.store.get("credential_pool")
    name = found.world.release.aliases.get(asked, asked)
    return bool(isinstance(pool, dict) and (pool.get(name) or pool.get(f"custom:{name}")))


def _named_like_it(found: Resolved, way: Way) -> tuple[Put, ...]:
    """A variable with the name of the provider that is set, and that nothing refers to."""
    if not way.own or any(way.own.block.get(key) for key in _NAMING):
        return ()
    word = "".join(char if char.isalnum() else "_" for char in way.own.name).upper()
    for name in (f"{word}_API_KEY", f"{word}_KEY", f"{word}_TOKEN"):
        if found.world.release.is_usable(found.world.getenv(name)):
            return (Put((*way.own.path, "key_env"), name),)
    return ()


def _no_key(way: Way, key: Key) -> Finding:
    """Something stands in its place that is none."""
    masked = key.state == "masked"
    what = "a masked text" if masked else "a placeholder"
    place = key.source.via or key.source
    return Finding(
        code="ENV-REDACTED" if masked else "PROVIDER-KEY",
        severity=way.severity,
        title=f"{said(key.name)} holds {what} instead of a key",
        subject=way.route.path,
        detail=(
            "It was saved where the key was. Take the line from a backup, or get a new key."
            if masked
            else "Put the key itself there."
        ),
        evidence=(Evidence(place.place, f"{said(place.name)} holds {what}"),),
    )


def _unwhole(way: Way) -> Finding:
    """The key is sent together with something that is no part of it."""
    key = way.route.key
    assert key is not None
    place = key.source.via or key.source
    what = " and ".join(_FAULTS[fault] for fault in key.faults)
    by_hand = place.kind not in ("env", "config")
    return Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=f"{said(key.name)} is sent with {what}",
        subject=way.route.path,
        detail=(
            "The provider refuses it. Only the key itself belongs there."
            + (" Remove the entry with `hermes auth` and add it anew." if by_hand else "")
        ),
        evidence=(Evidence(place.place, f"{said(place.name)} holds {what}"),),
        fix=None if by_hand else "mend-key",
        data={"name": place.name, "kind": place.kind},
    )


def _unread(way: Way, place: Source) -> Finding:
    """The line is there, and what fills the environment cannot read it."""
    return Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=f"{said(place.name)} is in .env, in a line that Hermes cannot read",
        subject=way.route.path,
        detail="A quote that is not closed makes it skip the line. Only the key belongs there.",
        evidence=(Evidence(place.place, f"the line of {said(place.name)}"),),
        fix="mend-key",
        data={"name": place.name, "kind": place.kind},
    )


def _stranger(found: Resolved, way: Way) -> Iterator[Finding]:
    """Before 0.15, a key of OpenAI or OpenRouter goes to whatever address has none of its own."""
    route: Route = way.route
    key, url = route.key, route.base_url
    if found.world.release.since(0, 15) or key is None or url is None:
        return
    domain = _OTHERS.get(key.name)
    if domain is None or key.source.via or not urls.is_public(url.value or ""):
        return
    if any(urls.belongs(url.value or "", one) for one in (*_OTHERS.values(), "azure.com")):
        return
    sure = key.name == "OPENROUTER_API_KEY" or key.vendor is not None
    edits: tuple[Edit, ...] = _named_like_it(found, way)
    yield Finding(
        code="CRED-STRANGER",
        severity=Severity.ERROR if sure else Severity.INFO,
        title=f"{key.name} is sent to {said(urls.host(url.value or ''))}",
        subject=route.path,
        detail=(
            "This release hands it to any address that has no key of its own. Name that "
            "provider's own key with `key_env`, and renew the other one if it was no friend."
        ),
        evidence=(Evidence(url.source.place, f"{said(url.value)} has no key of its own"),),
        caused_by="CFG-KEY-ENV" if way.own and way.own.block.get("api_key_env") else None,
        fix="name-key" if edits else None,
        data={"edits": edits},
    )
