"""Find variables in config.yaml that Hermes sends literally instead of their value."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Drop,
    Edit,
    Evidence,
    Finding,
    Probes,
    Put,
    Resolved,
    Severity,
    Unfilled,
    check,
    configured,
    is_unset,
    own_providers,
    references,
    said,
    said_variable,
    sentences,
    text,
    users,
    ways,
)


@check(id="config-variables", group="configuration", codes=["CFG-UNRESOLVED"], by_release=True)
def config_variables(probes: Probes) -> Iterator[Finding]:
    """Is every variable in config.yaml replaced by its value?"""
    found = configured(probes)
    for one in references.unfilled(found.world):
        unset = True if one.is_set or not one.filled else is_unset(probes, one.name)
        if unset is False:
            continue  # the service sets it
        path = ".".join(map(str, one.path))
        edits = _edits(found, one)
        severity = _severity(found, one)
        if unset is None and severity.rank < Severity.WARNING.rank:
            severity = Severity.WARNING
        yield Finding(
            code="CFG-UNRESOLVED",
            severity=severity,
            title=_title(found, one, path, unset=unset),
            subject=path,
            detail=_detail(one, severity, unset=unset),
            next="" if edits else _next(found, one),
            evidence=(
                Evidence(
                    found.world.document.source(*one.path).place,
                    text(
                        "{setting} uses {variable}",
                        setting=said(path),
                        variable=said_variable(found, one.name),
                    ),
                ),
            ),
            fix="rewrite-setting" if edits else None,
            data={"edits": edits},
        )


def _name(found: Resolved, one: Unfilled) -> str | None:
    """Return the variable's name; None if it may be a key, which a title does not show."""
    return one.name if said_variable(found, one.name) == one.name else None


def _title(found: Resolved, one: Unfilled, path: str, *, unset: bool | None) -> str:
    name = _name(found, one)
    if one.is_set or not one.filled:
        return text("the variable in {setting} is not filled in", setting=said(path))
    if name is None:
        return text("config.yaml uses a variable that was not found")
    if unset is None:
        return text("{variable} was not found, but config.yaml uses it", variable=name)
    return text("{variable} is not set, but config.yaml uses it", variable=name)


def _detail(one: Unfilled, severity: Severity, *, unset: bool | None) -> str:
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
    if not one.filled:
        return sentences(effect, "The gateway does not replace variables here.")
    if one.is_set:
        return sentences(effect, "Hermes knows only the form `${NAME}`.")
    return effect


def _next(found: Resolved, one: Unfilled) -> str:
    name = _name(found, one)
    if one.filled and not one.is_set and name:
        return text("Add {variable}=... to .env, then restart the gateway.", variable=name)
    if one.filled and not one.is_set:
        return "Add the variable to .env, then restart the gateway."
    if one.filled:
        return text("Write `${{{variable}}}`.", variable=name or "NAME")
    if one.secret:
        return text("Write `key_env: {variable}` instead.", variable=name or "NAME")
    return "Write the value itself."


def _severity(found: Resolved, one: Unfilled) -> Severity:
    if one.path[0] == "model":
        return _of_the_model(found, one)
    entry = next((e for e in own_providers(found.world) if e.path == one.path[:2]), None)
    if entry is not None:
        return users(found, entry)
    link = next((way for way in ways(found) if way.path == one.path[:-1]), None)
    return link.severity if link else Severity.WARNING


def _of_the_model(found: Resolved, one: Unfilled) -> Severity:
    main = ways(found)[0]
    if one.path[-1] not in ("base_url", "api_base", "api_key", "api"):
        return main.severity
    sources = [value.source for value in (main.route.key, main.route.base_url) if value]
    counts = any(source.name == ".".join(map(str, one.path)) for source in sources)
    return main.severity if counts else Severity.INFO


def _edits(found: Resolved, one: Unfilled) -> tuple[Edit, ...]:
    if not one.whole or not one.is_set:
        return ()
    if one.filled:
        return (Put(one.path, one.right),)
    if one.secret:
        # older releases have no `key_env` here, and we do not write a key into config.yaml
        named = (Drop(one.path), Put((*one.path[:-1], "key_env"), one.name))
        return named if found.world.release.since(0, 15) else ()
    value = references.value_of(found.world, one.name)
    return (Put(one.path, value),) if value else ()
