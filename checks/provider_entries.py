"""Check that custom providers in config.yaml are written in a form that Hermes reads."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Drop,
    Edit,
    Evidence,
    Finding,
    Misshapen,
    Probes,
    Put,
    Rename,
    Resolved,
    Severity,
    bare,
    check,
    configured,
    listed,
    said,
    shapes,
    text,
)

_LATER = "api_key_env"


@check(id="provider-entries", group="configuration", codes=["CFG-PROVIDERS-SHAPE"], by_release=True)
def provider_entries(probes: Probes) -> Iterator[Finding]:
    """Can Hermes read your own provider entries?"""
    found = configured(probes)
    for one in shapes.providers(found.world):
        edits = _edits(found, one)
        name = ".".join(map(str, one.path))
        wanted = _wanted(found) & {each.lower() for each in one.names}
        yield Finding(
            code="CFG-PROVIDERS-SHAPE",
            severity=_severity(found, bool(wanted)),
            title=text("Hermes cannot read the providers in {setting}", setting=name),
            subject=name,
            detail=(
                text(
                    "Every message fails, because Hermes does not find {providers}."
                    if _severity(found, bool(wanted)) is Severity.ERROR
                    else "Hermes does not find {providers}, which your settings use.",
                    providers=listed([said(each) for each in sorted(wanted)]),
                )
                if wanted
                else "Your settings do not use these providers."
            ),
            evidence=(
                Evidence(found.world.document.source(*one.path).place, f"{name} {one.what}"),
            ),
            fix="rewrite-setting" if edits else None,
            data={"edits": edits},
            next=""
            if edits
            else "Write each provider as a key under `providers:`, with its settings below it.",
        )


def _wanted(found: Resolved) -> set[str]:
    """Return the names of all providers that are used."""
    routes = (found.main, *found.fallback)
    asked = [one.requested.value for one in routes] + [one.provider.value for one in found.tasks]
    return {str(word).lower().removeprefix("custom:") for word in asked if word}


def _severity(found: Resolved, wanted: bool) -> Severity:
    if not wanted:
        return Severity.INFO
    broken = found.main.trouble is not None and found.used is None
    return Severity.ERROR if broken else Severity.WARNING


def _edits(found: Resolved, one: Misshapen) -> tuple[Edit, ...]:
    """Return the edits that move the block to the right key or rewrite it in the right form."""
    if one.value is not None:
        return (Put(one.path, bare(one.value)),)
    if one.moved is None:
        return ()
    if len(one.path) == 1:
        inside: tuple[Edit, ...] = ()
        if one.moved == ("providers",):  # `api_key_env` is ignored there
            block = found.world.raw[one.path[0]]
            inside = tuple(
                Rename((*one.path, name, _LATER), "key_env")
                for name, entry in block.items()
                if entry.get(_LATER) and not entry.get("key_env")
            )
        return (*inside, Rename(one.path, str(one.moved[0])))
    value = bare(found.world.raw["model"][one.path[1]])
    return (Put(one.moved, value), Drop(one.path))
