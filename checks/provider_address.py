"""Check that the provider's base URL is complete, well-formed and not overridden by another one."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Assign, Drop, Edit, Put, Rename, Unset
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Resolved,
    Source,
    entry_with_address,
    redact_for_display,
    resolved_or_skip,
    routes,
)
from hermes_doctor.api.settings import urls
from hermes_doctor.api.tools import pattern, sentences

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
    """Is the address of the provider valid and in use?"""
    resolved = resolved_or_skip(probes)
    for way in routes(resolved):
        trouble = way.route.trouble
        if trouble and trouble.kind == "address":
            yield _no_address(way)
        if way.route.base_url is not None:
            yield from _malformed(resolved, way)
            yield from _nowhere(resolved, way)
            if way.is_main:
                yield from _shadowed(resolved, way)


def _no_address(way: ConfiguredRoute) -> Finding:
    """Report a provider that needs a base URL but has none."""
    return Finding(
        code="CFG-BASE-URL",
        severity=way.severity,
        title=text("{provider} has no address", provider=redact_for_display(_name(way))),
        subject=f"{way.route.path}.base_url",
        detail=_effect(way, "This provider needs a base_url."),
        evidence=(
            Evidence(
                way.route.requested.source.place,
                f"provider: {redact_for_display(way.route.requested.value)}",
            ),
        ),
        next=text("Add `base_url: https://…` to {path}.", path=redact_for_display(way.route.path)),
    )


def _malformed(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a base URL with a wrong path, a wrong host or port, or without a scheme."""
    url = way.route.base_url
    assert url is not None
    if url.source.kind not in ("config", "env"):
        return
    address = str(url.value or "").strip()
    mode = way.route.api_mode.value if way.route.api_mode else ""
    ends = _DOUBLED.search(address) or (mode == "anthropic_messages" and _MESSAGES.search(address))
    if "${" in address:
        return
    name, twice = redact_for_display(_name(way)), _TWICE.search(address)
    if twice:
        yield _finding(
            resolved,
            way,
            url.source,
            text(
                "{provider}: the address has {end} twice",
                provider=name,
                end=redact_for_display(twice[1]),
            ),
            new=address[: twice.end(1)],
        )
    wrong = urls.fault(address) if "://" in address else None
    if wrong:
        yield _finding(
            resolved,
            way,
            url.source,
            text("{provider}: the address is not valid", provider=name),
            reason=wrong,
        )
    elif ends:
        yield _finding(
            resolved,
            way,
            url.source,
            text(
                "{provider}: the address must not end with {end}",
                provider=name,
                end=redact_for_display(ends[0]),
            ),
            cause="Hermes adds this path itself.",
            new=address[: ends.start()],
        )
    elif "://" not in address:
        scheme = "https" if urls.is_public(address) else "http"
        yield _finding(
            resolved,
            way,
            url.source,
            text("{provider}: the address lacks {scheme}://", provider=name, scheme=scheme),
            new=f"{scheme}://{address.lstrip('/')}",
        )
    elif mode == "chat_completions" and not urls.path(address).strip("/"):
        end = _SURE.get(urls.host(address)) or _LOCAL.get(urls.port(address) or 0)
        if end:
            yield _finding(
                resolved,
                way,
                url.source,
                text("{provider}: the address lacks {end}", provider=name, end=end),
                new=address.rstrip("/") + end,
            )
        else:
            title = text("{provider}: the address may lack /v1", provider=name)
            finding = _finding(resolved, way, url.source, title, severity=Severity.INFO)
            yield finding._replace(detail="Most servers have their API at /v1, some at the root.")


def _finding(
    resolved: Resolved,
    way: ConfiguredRoute,
    source: Source,
    title: str,
    *,
    cause: str = "",
    reason: str = "",
    new: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    path, _ = resolved.world.document.text(source.name)
    edits: tuple[Edit, ...] = ()
    if new and source.kind == "config" and path and not source.via:
        edits = (Put(path, new),)
    elif new and source.kind == "env":
        edits = (Assign(source.name, new),)
    address = (
        redact_for_display(way.route.base_url.value)
        if way.route.base_url
        else redact_for_display(source.name)
    )
    right = text("It should be {address}.", address=redact_for_display(new)) if new else ""
    return Finding(
        code="CFG-BASE-URL",
        severity=severity or way.severity,
        title=title,
        subject=source.name,
        detail=_effect(way, cause, right),
        evidence=(Evidence(source.place, f"{reason}: {address}" if reason else address),),
        fix="mend-address" if edits else None,
        data={"edits": edits},
        next="" if edits else "Correct the address; the provider's manual has it.",
    )


def _effect(way: ConfiguredRoute, *causes: str) -> str:
    """Return what follows if this route does not work, and why it does not."""
    fails = "Every message fails." if way.severity is Severity.ERROR else ""
    return sentences(fails or "This provider cannot be used.", *causes)


def _name(way: ConfiguredRoute) -> str:
    return way.own.name if way.own else way.route.requested.value or "the provider"


def _nowhere(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report `custom` without a base URL, for which Hermes uses OpenRouter's."""
    url = way.route.base_url
    asked = (way.route.requested.value or "").lower()
    own = asked == "custom" or resolved.world.release.provider(asked) == "custom"
    if url is None or url.source.kind != "default" or not own or way.own:
        return
    block = resolved.world.raw.get("model") if way.is_main else {}
    edits: tuple[Edit, ...] = ()
    if isinstance(block, dict) and block.get("api_base") and not block.get("base_url"):
        edits = (Rename(("model", "api_base"), "base_url"),)
    local = {"ollama": "http://127.0.0.1:11434/v1", "vllm": "http://127.0.0.1:8000/v1"}
    example = local.get(asked, "https://…/v1")
    yield Finding(
        code="CFG-BASE-URL",
        severity=way.severity,
        title=text(
            "{provider} has no address, so messages go to {host}",
            provider=redact_for_display(asked),
            host=redact_for_display(urls.host(url.value or "")),
        ),
        subject=f"{way.route.path}.base_url",
        detail=(
            "Without a base_url Hermes uses OpenRouter's address. This release ignores `api_base`."
            if edits
            else "Without a base_url Hermes uses OpenRouter's address."
        ),
        evidence=(
            Evidence(way.route.requested.source.place, f"provider: {redact_for_display(asked)}"),
        ),
        fix="mend-address" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else text(
            "Add `base_url: {example}` to {path}.",
            example=example,
            path=redact_for_display(way.route.path),
        ),
    )


def _shadowed(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report another base URL that is set but ignored."""
    url, route = way.route.base_url, way.route
    assert url is not None
    for other in url.shadows:
        if other.source.name == "CUSTOM_BASE_URL" or _same(other.value, url.value):
            continue
        if way.own is None and entry_with_address(resolved.world, other.value):
            continue  # provider-left offers the provider that has this address
        if url.source.name == "CUSTOM_BASE_URL":
            edits: tuple[Edit, ...] = (Unset("CUSTOM_BASE_URL"),) if url.source.line else ()
            why = "Messages go to the address in CUSTOM_BASE_URL, which overrides it."
            step = "Remove CUSTOM_BASE_URL."
            severity = Severity.WARNING
        elif route.provider and route.provider.value == "openrouter":
            sold = urls.belongs(other.value or "", "openrouter.ai")
            unknown = not sold and "/" not in (route.model.value or "/")
            severity = Severity.INFO if sold else way.severity if unknown else Severity.WARNING
            edits = _elsewhere(resolved, way) if not sold else ()
            why = _to_openrouter(sold=sold, unknown=unknown)
            step = "Set the provider to custom to use your own address."
        else:
            severity, edits = Severity.WARNING, ()
            if other.source.name == "model.base_url":
                edits = (Drop(("model", "base_url")),)
            why = "Messages go to the address of another setting."
            step = "Delete the line, or write this address where Hermes reads it."
        yield Finding(
            code="CFG-BASE-URL",
            severity=severity,
            title=text(
                "Hermes ignores the address in {setting}",
                setting=redact_for_display(other.source.name),
            ),
            subject=other.source.name,
            detail=why,
            evidence=(
                Evidence(other.source.place, f"ignored: {redact_for_display(other.value)}"),
                Evidence(url.source.place, f"used: {redact_for_display(url.value)}"),
            ),
            fix="mend-address" if edits else None,
            data={"edits": edits},
            next="" if edits else step,
        )


def _to_openrouter(*, sold: bool, unknown: bool) -> str:
    """Return what follows if Hermes uses OpenRouter's address instead of another one."""
    if sold:
        return "Hermes always uses OpenRouter's own address for this provider."
    if unknown:
        return (
            "Every message fails: it goes to OpenRouter, whose models are all named like "
            "vendor/model."
        )
    return "Every message goes to OpenRouter instead, with your OpenRouter key and at its prices."


def _same(one: str | None, other: str | None) -> bool:
    return (one or "").strip().rstrip("/") == (other or "").strip().rstrip("/")


def _elsewhere(resolved: Resolved, way: ConfiguredRoute) -> tuple[Edit, ...]:
    """Return the edit to `custom` if `model:` has both a base URL and a key; else nothing."""
    model = resolved.world.raw.get("model")
    if not isinstance(model, dict) or not model.get("base_url") or not model.get("api_key"):
        return ()
    return (Put(way.provider, "custom"),)
