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
    said,
    text,
)

_MODELS = ("LLM_MODEL", "HERMES_MODEL", "OPENAI_MODEL")


@check(id="model-variables", group="configuration", codes=["ENV-IGNORED"], by_release=True)
def model_variables(probes: Probes) -> Iterator[Finding]:
    """Do variables say something about the model that config.yaml does not?"""
    found = configured(probes)
    model, url = found.main.model.value, found.main.base_url
    for name in _MODELS:
        value = found.world.getenv(name)
        if value and value.strip() != (model or "").strip():
            yield _finding(found, name, "`model.default` in config.yaml is the model")
    address = found.world.getenv("OPENAI_BASE_URL")
    uses = found.main.provider and found.main.provider.value == "openai-api"
    if address and url and not uses and address.rstrip("/") != (url.value or "").rstrip("/"):
        yield _finding(
            found,
            "OPENAI_BASE_URL",
            "`model.base_url` in config.yaml is the address; other programs may use the variable",
        )._replace(fix=None)
    for other in found.main.requested.shadows:
        if other.value != found.main.requested.value:
            yield _provider(found, other.source.name)


def _finding(found: Resolved, name: str, instead: str) -> Finding:
    source = found.world.getenv(name).source
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.INFO,
        title=text("{name} is ignored", name=name),
        subject=name,
        detail=text("{instead}. Take the line out if nothing else needs it.", instead=instead),
        evidence=(Evidence(source.place, f"{name} is set"),),
        fix="drop-variable" if source.kind == "env" else None,
        data={"edits": (Unset(name),)},
    )


def _provider(found: Resolved, name: str) -> Finding:
    """Report a second place that names a provider; the precedence changed with 0.15."""
    asked = found.main.requested
    by_variable = asked.source.kind in ("env", "process")
    return Finding(
        code="ENV-IGNORED",
        severity=Severity.WARNING if by_variable else Severity.INFO,
        title=text(
            "{name} is ignored: {source} names the provider",
            name=said(name),
            source=said(asked.source.name),
        ),
        subject=name,
        detail=(
            "In this release the variable counts before config.yaml. Take it out of .env to have "
            "config.yaml count."
            if by_variable
            else "config.yaml counts first. Take the variable out, so that nobody is misled."
        ),
        evidence=(Evidence(asked.source.place, f"the provider is {said(asked.value)}"),),
        fix="drop-variable"
        if "HERMES_INFERENCE_PROVIDER" in found.world.readings.dotenv.values
        else None,
        data={"edits": (Unset("HERMES_INFERENCE_PROVIDER"),)},
    )
