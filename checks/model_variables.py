"""Check for variables that name a model, address or provider but that Hermes ignores."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Evidence,
    Finding,
    Probes,
    Resolved,
    Severity,
    Unset,
    check,
    configured,
    ignored_relay,
    said,
    text,
    urls,
)

_MODELS = ("LLM_MODEL", "HERMES_MODEL", "OPENAI_MODEL")


@check(id="model-variables", group="configuration", codes=["ENV-IGNORED"], by_release=True)
def model_variables(probes: Probes) -> Iterator[Finding]:
    """Do variables for the model have an effect?"""
    found = configured(probes)
    model, url = found.main.model.value, found.main.base_url
    for name in _MODELS:
        value = found.world.getenv(name)
        if value and value.strip() != (model or "").strip():
            yield _finding(
                found, name, "Hermes reads the model from `model.default` in config.yaml."
            )
    address = found.world.getenv("OPENAI_BASE_URL")
    uses = found.main.provider and found.main.provider.value == "openai-api"
    ignored = address and not uses and not ignored_relay(found)
    if ignored and url and address.rstrip("/") != (url.value or "").rstrip("/"):
        yield _finding(
            found,
            "OPENAI_BASE_URL",
            text(
                "Messages go to {host}: Hermes reads the address from `model.base_url` in "
                "config.yaml.",
                host=said(urls.host(url.value or "")),
            ),
        )._replace(fix=None)
    for other in found.main.requested.shadows:
        if other.value != found.main.requested.value:
            yield _provider(found, other.source.name)


def _finding(found: Resolved, name: str, detail: str) -> Finding:
    source = found.world.getenv(name).source
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.INFO,
        title=text("Hermes ignores {variable}", variable=name),
        subject=name,
        detail=detail,
        evidence=(Evidence(source.place, f"{name} is set"),),
        fix="drop-variable" if source.kind == "env" else None,
        data={"edits": (Unset(name),)},
        next=text("Remove {variable} if no other program needs it.", variable=name),
    )


def _provider(found: Resolved, name: str) -> Finding:
    """Report a second place that names a provider; the precedence changed with 0.15."""
    asked = found.main.requested
    by_variable = asked.source.kind in ("env", "process")
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.WARNING if by_variable else Severity.INFO,
        title=text("Hermes ignores the provider in {setting}", setting=said(name)),
        subject=name,
        detail=(
            text(
                "In this release {variable} overrides config.yaml.",
                variable=said(asked.source.name),
            )
            if by_variable
            else "config.yaml overrides the variable."
        ),
        evidence=(Evidence(asked.source.place, f"{said(asked.source.name)}: {said(asked.value)}"),),
        fix="drop-variable"
        if "HERMES_INFERENCE_PROVIDER" in found.world.readings.dotenv.values
        else None,
        data={"edits": (Unset("HERMES_INFERENCE_PROVIDER"),)},
        next="Remove the variable HERMES_INFERENCE_PROVIDER if config.yaml is right.",
    )
