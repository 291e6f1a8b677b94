"""Find variables in config.yaml that Hermes sends literally instead of their value."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Drop, Edit, Put
from hermes_doctor.api.providers import (
    Resolved,
    is_unset,
    provider_entries,
    redact_for_display,
    redact_variable_name,
    resolved_or_skip,
    routes,
    severity_if_broken,
)
from hermes_doctor.api.settings import UnresolvedReference, provider_mistakes
from hermes_doctor.api.tools import sentences


@check(id="config-variables", group="configuration", codes=["CFG-UNRESOLVED"], by_release=True)
def config_variables(probes: Probes) -> Iterator[Finding]:
    """Is every variable in config.yaml replaced by its value?"""
    resolved = resolved_or_skip(probes)
    for unresolved_reference in provider_mistakes.unresolved_references(resolved.world):
        unset = (
            True
            if unresolved_reference.is_set or not unresolved_reference.filled
            else is_unset(probes, unresolved_reference.name)
        )
        if unset is False:
            continue  # the service sets it
        path = ".".join(map(str, unresolved_reference.path))
        edits = _edits(resolved, unresolved_reference)
        severity = _severity(resolved, unresolved_reference)
        if unset is None and severity.rank < Severity.WARNING.rank:
            severity = Severity.WARNING
        yield Finding(
            code="CFG-UNRESOLVED",
            severity=severity,
            title=_title(resolved, unresolved_reference, path, unset=unset),
            subject=path,
            detail=_detail(unresolved_reference, severity, unset=unset),
            next="" if edits else _next(resolved, unresolved_reference),
            evidence=(
                Evidence(
                    resolved.world.document.source(*unresolved_reference.path).place,
                    text(
                        "{setting} uses {variable}",
                        setting=redact_for_display(path),
                        variable=redact_variable_name(resolved, unresolved_reference.name),
                    ),
                ),
            ),
            fix="rewrite-setting" if edits else None,
            data={"edits": edits},
        )


def _name(resolved: Resolved, reference: UnresolvedReference) -> str | None:
    """Return the variable's name; None if it may be a key, which a title does not show."""
    return (
        reference.name if redact_variable_name(resolved, reference.name) == reference.name else None
    )


def _title(
    resolved: Resolved, reference: UnresolvedReference, path: str, *, unset: bool | None
) -> str:
    name = _name(resolved, reference)
    if reference.is_set or not reference.filled:
        return text("the variable in {setting} is not filled in", setting=redact_for_display(path))
    if name is None:
        return text("config.yaml uses a variable that was not found")
    if unset is None:
        return text("{variable} was not found, but config.yaml uses it", variable=name)
    return text("{variable} is not set, but config.yaml uses it", variable=name)


def _detail(reference: UnresolvedReference, severity: Severity, *, unset: bool | None) -> str:
    if severity is Severity.INFO:
        return text("Nothing uses this setting now.")
    if unset is None:
        return text(
            "Could not check whether the service of the gateway sets it. If not, Hermes sends the "
            "name instead of the value and requests fail."
        )
    if severity is Severity.WARNING:
        effect = text("Requests that use this setting fail: Hermes sends the name, not the value.")
    else:
        effect = text("Every message fails: Hermes sends the name, not the value.")
    if not reference.filled:
        return sentences(effect, "The gateway does not replace variables here.")
    if reference.is_set:
        return sentences(effect, "Hermes knows only the form `${NAME}`.")
    return effect


def _next(resolved: Resolved, reference: UnresolvedReference) -> str:
    name = _name(resolved, reference)
    if reference.filled and not reference.is_set and name:
        return text("Add {variable}=... to .env, then restart the gateway.", variable=name)
    if reference.filled and not reference.is_set:
        return "Add the variable to .env, then restart the gateway."
    if reference.filled:
        return text("Write `${{{variable}}}`.", variable=name or "NAME")
    if reference.secret:
        return text("Write `key_env: {variable}` instead.", variable=name or "NAME")
    return "Write the value itself."


def _severity(resolved: Resolved, reference: UnresolvedReference) -> Severity:
    if reference.path[0] == "model":
        main = routes(resolved)[0]
        if reference.path[-1] not in ("base_url", "api_base", "api_key", "api"):
            return main.severity
        sources = [value.source for value in (main.route.key, main.route.base_url) if value]
        counts = any(source.name == ".".join(map(str, reference.path)) for source in sources)
        return main.severity if counts else Severity.INFO
    entry = next(
        (e for e in provider_entries(resolved.world) if e.path == reference.path[:2]), None
    )
    if entry is not None:
        return severity_if_broken(resolved, entry)
    link = next((way for way in routes(resolved) if way.path == reference.path[:-1]), None)
    return link.severity if link else Severity.WARNING


def _edits(resolved: Resolved, reference: UnresolvedReference) -> tuple[Edit, ...]:
    if not reference.whole or not reference.is_set:
        return ()
    if reference.filled:
        return (Put(reference.path, reference.right),)
    if reference.secret:
        # older releases have no `key_env` here, and we do not write a key into config.yaml
        named = (Drop(reference.path), Put((*reference.path[:-1], "key_env"), reference.name))
        return named if resolved.world.release.since(0, 15) else ()
    value = provider_mistakes.writable_value(resolved.world, reference.name)
    return (Put(reference.path, value),) if value else ()
