"""Check that the provider's base URL is complete, well-formed and not overridden by another one."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Assign,
    Drop,
    Edit,
    Evidence,
    Finding,
    Probes,
    Put,
    Rename,
    Resolved,
    Severity,
    Source,
    Unset,
    Way,
    check,
    configured,
    pattern,
    said,
    text,
    urls,
    ways,
)

_DOUBLED = pattern(r"(?i)/(?:chat/completions|completions|responses|embeddings|models)/*$")
_MESSAGES = pattern(r"(?i)/messages/*$")
_TWICE = pattern(r"(?i)(/v\d{1,2})(?:/*\1)+/*$")
_SURE = {
    "api.openai.com": "/v1",
    "openrouter.ai": "/api/v1",
    "api.groq.com": "/openai/v1",
    "api.mistral.ai": "/v1",
    "api.together.xyz": "/v1",
}
_LOCAL = {11434: "/v1", 1234: "/v1"}
"""API paths of Ollama and LM Studio, by their default port."""


@check(id="provider-address", group="configuration", codes=["CFG-BASE-URL"], by_release=True)
def provider_address(probes: Probes) -> Iterator[Finding]:
    """Do messages go to the address that is written down?"""
    found = configured(probes)
    for way in ways(found):
        trouble = way.route.trouble
        if trouble and trouble.kind == "address":
            yield _no_address(found, way, trouble.why)
        if way.route.base_url is not None:
            yield from _malformed(found, way)
            yield from _nowhere(found, way)
            if way.is_main:
                yield from _shadowed(found, way)


def _no_address(found: Resolved, way: Way, why: str) -> Finding:
    """Report a provider that needs a base URL but has none."""
    return Finding(
        code="CFG-BASE-URL",
        severity=way.severity,
        title=said(why),
        subject=f"{way.route.path}.base_url",
        detail=text("Add `base_url: https://…` to {path}.", path=said(way.route.path)),
        evidence=(Evidence(way.route.requested.source.place, said(way.route.requested.value)),),
    )


def _malformed(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report a base URL with a wrong path, a wrong host or port, or without a scheme."""
    url = way.route.base_url
    assert url is not None
    if url.source.kind not in ("config", "env"):
        return
    text = str(url.value or "").strip()
    mode = way.route.api_mode.value if way.route.api_mode else ""
    ends = _DOUBLED.search(text) or (mode == "anthropic_messages" and _MESSAGES.search(text))
    if "${" in text:
        return
    twice = _TWICE.search(text)
    if twice:
        why = f"{said(twice[1])} stands at its end twice"
        yield _finding(found, way, url.source, text[: twice.end(1)], why, way.severity)
    wrong = urls.fault(text) if "://" in text else None
    if wrong:
        why = f"{wrong}, so no request can be sent"
        yield _finding(found, way, url.source, None, why, way.severity)
    elif ends:
        why = f"Hermes adds {said(ends[0])} itself, so the request goes to it twice over"
        yield _finding(found, way, url.source, text[: ends.start()], why, way.severity)
    elif "://" not in text:
        scheme = "https" if urls.is_public(text) else "http"
        why = "it lacks https:// or http:// in front, so no connection is made"
        yield _finding(found, way, url.source, f"{scheme}://{text.lstrip('/')}", why, way.severity)
    elif mode == "chat_completions" and not urls.path(text).strip("/"):
        end = _SURE.get(urls.host(text)) or _LOCAL.get(urls.port(text) or 0)
        why = f"it ends without {end or '/v1'}, where such servers have their API"
        severity = way.severity if end else Severity.INFO
        new = text.rstrip("/") + end if end else None
        yield _finding(found, way, url.source, new, why, severity)


def _finding(
    found: Resolved, way: Way, source: Source, new: str | None, why: str, severity: Severity
) -> Finding:
    path, _ = found.world.document.text(source.name)
    edits: tuple[Edit, ...] = ()
    if new and source.kind == "config" and path and not source.via:
        edits = (Put(path, new),)
    elif new and source.kind == "env":
        edits = (Assign(source.name, new),)
    return Finding(
        code="CFG-BASE-URL",
        severity=severity,
        title=text("the address of {way} is not whole: {why}", way=said(_name(way)), why=why),
        subject=source.name,
        detail=text("Write {new}.", new=said(new)) if new else "Look into the provider's manual.",
        evidence=(Evidence(source.place, f"{said(source.name)} is the address"),),
        fix="mend-address" if edits else None,
        data={"edits": edits},
    )


def _name(way: Way) -> str:
    return way.own.name if way.own else way.route.requested.value or "the provider"


def _nowhere(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report `custom` without a base URL, for which Hermes uses OpenRouter's."""
    url = way.route.base_url
    asked = (way.route.requested.value or "").lower()
    own = asked == "custom" or found.world.release.provider(asked) == "custom"
    if url is None or url.source.kind != "default" or not own or way.own:
        return
    block = found.world.raw.get("model") if way.is_main else {}
    edits: tuple[Edit, ...] = ()
    if isinstance(block, dict) and block.get("api_base") and not block.get("base_url"):
        edits = (Rename(("model", "api_base"), "base_url"),)
    local = {"ollama": "http://127.0.0.1:11434/v1", "vllm": "http://127.0.0.1:8000/v1"}
    example = local.get(asked, "https://…/v1")
    yield Finding(
        code="CFG-BASE-URL",
        severity=way.severity,
        title=text(
            "{asked} has no address, so messages go to {host}",
            asked=said(asked),
            host=said(urls.host(url.value or "")),
        ),
        subject=f"{way.route.path}.base_url",
        detail=(
            "This release reads `base_url`, not `api_base`."
            if edits
            else text(
                "Add `base_url: {example}` to {path}.", example=example, path=said(way.route.path)
            )
        ),
        evidence=(Evidence(way.route.requested.source.place, f"the provider is {said(asked)}"),),
        fix="mend-address" if edits else None,
        data={"edits": edits},
    )


def _shadowed(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report another base URL that is set but ignored."""
    url, route = way.route.base_url, way.route
    assert url is not None
    for other in url.shadows:
        if other.source.name == "CUSTOM_BASE_URL" or _same(other.value, url.value):
            continue
        if url.source.name == "CUSTOM_BASE_URL":
            edits: tuple[Edit, ...] = (Unset("CUSTOM_BASE_URL"),) if url.source.line else ()
            why = "CUSTOM_BASE_URL counts first. Take it out of .env to have the other one count."
            severity = Severity.WARNING
        elif route.provider and route.provider.value == "openrouter":
            sold = urls.belongs(other.value or "", "openrouter.ai")
            severity = Severity.INFO if sold else Severity.WARNING
            edits = _elsewhere(found, way) if not sold else ()
            why = "With OpenRouter no address counts; for one of your own the provider is `custom`."
        else:
            severity, edits = Severity.INFO, ()
            if other.source.name == "model.base_url":
                edits = (Drop(("model", "base_url")),)
            why = "Take the line out, or move the address to where it counts."
        yield Finding(
            code="CFG-BASE-URL",
            severity=severity,
            title=text(
                "{source} is ignored: messages go to {url}",
                source=said(other.source.name),
                url=said(url.value),
            ),
            subject=other.source.name,
            detail=why,
            evidence=(
                Evidence(other.source.place, f"{said(other.source.name)} is {said(other.value)}"),
                Evidence(url.source.place, f"{said(url.source.name)} counts"),
            ),
            fix="mend-address" if edits else None,
            data={"edits": edits},
        )


def _same(one: str | None, other: str | None) -> bool:
    return (one or "").strip().rstrip("/") == (other or "").strip().rstrip("/")


def _elsewhere(found: Resolved, way: Way) -> tuple[Edit, ...]:
    """Return the edit to `custom` if `model:` has both a base URL and a key; else nothing."""
    model = found.world.raw.get("model")
    if not isinstance(model, dict) or not model.get("base_url") or not model.get("api_key"):
        return ()
    return (Put(way.provider, "custom"),)
