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
    text,
    users,
    ways,
)


@check(id="config-variables", group="configuration", codes=["CFG-UNRESOLVED"], by_release=True)
def config_variables(probes: Probes) -> Iterator[Finding]:
    """Is every variable that config.yaml names for a provider filled in?"""
    found = configured(probes)
    for one in references.unfilled(found.world):
        unset = True if one.is_set or not one.filled else is_unset(probes, one.name)
        if unset is False:
            continue  # the service sets it
        path = ".".join(map(str, one.path))
        edits = _edits(found, one)
        yield Finding(
            code="CFG-UNRESOLVED",
            severity=_severity(found, one) if unset else Severity.INFO,
            title=text(
                "{path} is sent as it is written, not as the value of {found}",
                path=said(path),
                found=_name(found, one),
            ),
            subject=path,
            detail=_detail(found, one)
            + ("" if unset else " The gateway's service may set it, too."),
            evidence=(
                Evidence(
                    found.world.document.source(*one.path).place,
                    f"names {said_variable(found, one.name)}, which is "
                    f"{'set' if one.is_set else 'not set'}",
                ),
            ),
            fix="rewrite-setting" if edits else None,
            data={"edits": edits},
        )


def _name(found: Resolved, one: Unfilled) -> str:
    """Return the variable's name; a title does not show a name that may be a key."""
    shown = said_variable(found, one.name)
    return shown if shown == one.name else "a variable"


def _detail(found: Resolved, one: Unfilled) -> str:
    shown = said_variable(found, one.name)
    name = shown if shown == one.name else "NAME"
    if one.filled and not one.is_set:
        return f"Put {name}=… into .env." if name == one.name else "Put the variable into .env."
    if one.filled:
        return f"Hermes knows the form `${{{name}}}` only."
    if one.secret:
        return f"Here Hermes fills in nothing: write `key_env: {name}` instead."
    return "Here the gateway fills in nothing: write the value itself."


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
