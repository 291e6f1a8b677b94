"""Check that the model's name is set, is text, and is still served by its provider."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Edit, Put, Rename
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    Resolved,
    provider_entries,
    provider_entry,
    redact_for_display,
    resolved_or_skip,
    routes,
    severity_if_broken,
)
from hermes_doctor.api.settings import WrongType, provider_mistakes, urls, whole_number

_VARIABLES = ("HERMES_MODEL", "LLM_MODEL", "OPENAI_MODEL")


@check(
    id="model-name",
    group="configuration",
    codes=["CFG-MODEL", "CFG-TYPE", "CFG-CONTEXT-LENGTH"],
    by_release=True,
)
def model_name(probes: Probes) -> Iterator[Finding]:
    """Is the model name valid and still served?"""
    resolved = resolved_or_skip(probes)
    main = routes(resolved)[0]
    odd = list(provider_mistakes.wrong_types(resolved.world))
    for wrong_type in odd:
        yield _kind(resolved, wrong_type)
    trouble = resolved.main.trouble
    if trouble and trouble.kind == "malformed" and not odd:
        yield _malformed(resolved, trouble.why)
    if not any(one.path[:2] in (("model", "default"), ("model",)) for one in odd):
        yield from _missing(resolved, main)
    for way in routes(resolved):
        yield from _retired(resolved, way)
    yield from _context(resolved, main)


def _kind(resolved: Resolved, wrong_type: WrongType) -> Finding:
    path = ".".join(map(str, wrong_type.path))
    quoted, severity = _quoted(resolved, wrong_type), _severity(resolved, wrong_type)
    return Finding(
        code="CFG-TYPE",
        severity=severity,
        title=text(
            "{path} must be text, not {kind}", path=redact_for_display(path), kind=wrong_type.kind
        ),
        subject=path,
        detail=(
            "Every message fails. Without quotation marks YAML does not read the value as text."
            if severity is Severity.ERROR and quoted
            else "Every message fails."
            if severity is Severity.ERROR
            else "Without quotation marks YAML does not read the value as text."
            if quoted
            else "Hermes cannot use the value."
        ),
        evidence=(
            Evidence(
                resolved.world.document.source(*wrong_type.path).place,
                f"YAML reads {wrong_type.kind}",
            ),
        ),
        fix="rewrite-setting" if quoted else None,
        data={"edits": (Put(wrong_type.path, quoted),)},
        next="" if quoted else "Write the name as text, or delete the line.",
    )


def _malformed(resolved: Resolved, why: str) -> Finding:
    """Report a malformed value outside `model:` that makes every message fail."""
    return Finding(
        code="CFG-TYPE",
        severity=routes(resolved)[0].severity,
        title="a provider setting in config.yaml must be text",
        subject="config.yaml",
        detail="Every message fails.",
        evidence=(
            Evidence(resolved.world.document.source("providers").place, redact_for_display(why)),
        ),
        next="Put quotation marks around the value, or delete the line.",
    )


def _quoted(resolved: Resolved, wrong_type: WrongType) -> str | None:
    """Return the value as quoted text, if that gives a usable name."""
    if wrong_type.text is None or wrong_type.kind == "true or false":
        return None
    if wrong_type.path[-1] != "provider":
        return wrong_type.text
    known = resolved.world.release.provider(wrong_type.text) or provider_entry(
        resolved.world, wrong_type.text
    )
    return wrong_type.text if known else None


def _severity(resolved: Resolved, wrong_type: WrongType) -> Severity:
    if wrong_type.path[0] in ("model", "provider", "base_url"):
        works = wrong_type.path[-1] == "provider" and resolved.main.trouble is None
        return Severity.WARNING if works else routes(resolved)[0].severity
    entry = next(
        (e for e in provider_entries(resolved.world) if e.path == wrong_type.path[:2]), None
    )
    return severity_if_broken(resolved, entry) if entry else Severity.WARNING


def _missing(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report that no model is set where the gateway looks for one."""
    if way.route.trouble or way.route.model.value:
        return
    block = resolved.world.raw.get("model")
    edits, detail = _named_elsewhere(resolved, way, block)
    url = way.route.base_url.value if way.route.base_url else None
    own = way.route.provider is not None and way.route.provider.value == "custom"
    own = own and urls.is_public(url or "")  # Hermes asks a local server for its model
    yield Finding(
        code="CFG-MODEL",
        severity=way.severity if own or edits else Severity.INFO,  # other providers may choose one
        title="no model is set",
        subject="model.default",
        detail=detail,
        evidence=(
            Evidence(resolved.world.document.source("model").place, "model.default is not set"),
        ),
        fix="set-model" if edits else None,
        data={"edits": edits},
        next="" if edits else "Choose a model with `hermes model`.",
    )


def _named_elsewhere(
    resolved: Resolved, way: ConfiguredRoute, block: object
) -> tuple[tuple[Edit, ...], str]:
    path = ("model", "default")
    fits = block is None or isinstance(block, dict)
    if isinstance(block, dict) and isinstance(block.get("name"), str) and block["name"].strip():
        edits: tuple[Edit, ...] = (Rename(("model", "name"), "default"),)
        return (
            edits,
            "Requests name no model. This release reads `model.default`, not `model.name`.",
        )
    named = way.own.model() if way.own else None
    if named and fits:
        return (Put(path, named),), text(
            "Requests name no model. {provider} sets {model}, but the gateway reads only "
            "`model.default`.",
            provider=redact_for_display(way.own.name if way.own else ""),
            model=redact_for_display(named),
        )
    for name in _VARIABLES:
        value = resolved.world.getenv(name)
        if value and fits:
            return (Put(path, str(value)),), text(
                "Requests name no model. {variable} is set, but the gateway reads only "
                "`model.default`.",
                variable=name,
            )
    return (), "Requests name no model, so the provider chooses one or refuses."


def _retired(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a model that a release of Hermes lists as retired."""
    model = (way.route.model.value or "").strip().lower()
    goes_to = way.route.provider.value if way.route.provider else None
    if not model or way.model is None or goes_to is None:
        return
    vendor, slash, bare = model.rpartition("/")
    owner = {"xai-oauth": "xai", "x-ai": "xai", "google": "gemini"}
    by = owner.get(vendor, vendor) if slash and goes_to in ("openrouter", "nous") else goes_to
    known = resolved.world.release.ever("retired").get(f"{owner.get(by, by)} {bare}")
    if known is None or (goes_to in ("openrouter", "nous") and by == "gemini"):
        return
    instead = str(known["is"])
    new = f"{way.route.model.value[: len(model) - len(bare)]}{instead}" if instead else ""  # type: ignore[index]
    edits = (Put(way.model, new),) if new else ()
    yield Finding(
        code="CFG-MODEL",
        severity=Severity.WARNING,
        title=text("{model} is retired", model=redact_for_display(way.route.model.value)),
        subject=f"{way.route.path}: {redact_for_display(model)}",
        detail=(
            text(
                "The provider probably rejects it, so messages fail. Its successor is {model}.",
                model=redact_for_display(instead),
            )
            if instead
            else "The provider probably rejects it, so messages fail."
        ),
        evidence=(Evidence(way.route.model.source.place, f"model: {redact_for_display(model)}"),),
        fix="set-model" if edits else None,
        data={"edits": edits},
        next="" if edits else "Choose another model with `hermes model`.",
    )


def _context(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a context length that Hermes refuses as too small or ignores as not a number."""
    raw = resolved.world.raw
    block = raw.get("model")
    at_top = not (isinstance(block, dict) and block.get("context_length")) and raw.get(
        "context_length"
    )
    path = ("context_length",) if at_top else ("model", "context_length")
    value = raw.get("context_length") if at_top else None
    if not at_top and isinstance(block, dict):
        value = block.get("context_length")
    if value is None:
        return
    number, meant = whole_number(value), provider_mistakes.meant_context_length(value)
    if number is not None and (number >= provider_mistakes.SMALLEST_CONTEXT or number <= 0):
        return
    small = number is not None
    edits: tuple[Edit, ...] = ()
    if not small and meant is not None and meant >= provider_mistakes.SMALLEST_CONTEXT:
        edits = (Put(path, meant),)
    yield Finding(
        code="CFG-CONTEXT-LENGTH",
        severity=way.severity if small else Severity.WARNING,
        title=(
            text(
                "context_length {number} is below the minimum of {minimum:,}",
                number=number,
                minimum=provider_mistakes.SMALLEST_CONTEXT,
            )
            if small
            else "context_length is not a number"
        ),
        subject=".".join(path),
        detail=(
            "Every message fails: Hermes refuses such a small context window."
            if small
            else text("Hermes ignores it. Did you mean {number}?", number=meant)
            if meant
            else "Hermes ignores it."
        ),
        evidence=(
            Evidence(
                resolved.world.document.source(*path).place,
                f"context_length: {redact_for_display(str(value))}",
            ),
        ),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else "Write the context length of the model, such as 128000, or delete the line.",
    )
