"""Check the keys of providers in the settings."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import Evidence, Finding, Probes, Severity, check, text
from hermes_doctor.api.edits import Drop, Edit, Put, Rename
from hermes_doctor.api.providers import (
    ConfiguredRoute,
    ProviderEntry,
    Resolved,
    each_once,
    likely_variable,
    provider_entries,
    redact_for_display,
    redact_variable_name,
    resolved_or_skip,
    routes,
    severity_if_broken,
)
from hermes_doctor.api.settings import urls
from hermes_doctor.api.tools import listed, pattern

_FAULTS = {
    "comment": "a comment",
    "quotes": "a stray quotation mark",
    "bearer": "the word Bearer",
    "letters": "characters that no key has",
    "name": "the name of its variable",
}
_OTHERS = {"OPENROUTER_API_KEY": "openrouter.ai", "OPENAI_API_KEY": "openai.com"}


@check(
    id="key-shape", group="configuration", codes=["CRED-SHAPE", "CRED-STRANGER"], by_release=True
)
def key_shape(probes: Probes) -> Iterator[Finding]:
    """Is each key sent complete and to its own provider?"""
    yield from each_once(_each(resolved_or_skip(probes)))


def _each(resolved: Resolved) -> Iterator[Finding]:
    """Report the mistakes of each route."""
    for way in routes(resolved):
        key = way.route.key
        if key and key.state == "usable" and key.faults:
            yield _damaged(way)
        elif key and key.state == "usable":
            yield from _stranger(resolved, way)
        elif key is None or key.state in ("missing", "not needed"):
            yield from _unread(resolved, way)


def _damaged(way: ConfiguredRoute) -> Finding:
    """Report a key that is sent together with characters that are not part of it."""
    key = way.route.key
    assert key is not None
    place = key.source.via or key.source
    extra = listed([_FAULTS[fault] for fault in key.faults])
    by_hand = place.kind not in ("env", "config")
    return Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=text("{key} contains more than the key", key=redact_for_display(key.name)),
        subject=way.route.path,
        detail=(
            "Every message fails: the provider rejects the key."
            if way.severity is Severity.ERROR
            else "The provider rejects the key."
        ),
        evidence=(Evidence(place.place, f"{redact_for_display(place.name)} contains {extra}"),),
        fix=None if by_hand else "mend-key",
        data={"name": place.name, "kind": place.kind},
        next="Remove the entry with `hermes auth` and add the key again." if by_hand else "",
    )


def _unread(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report a key in a line of .env that python-dotenv skips."""
    named = way.own.block.get("key_env") if way.own else None
    written = resolved.world.readings.own.values.get(str(named)) if named else None
    if not written or str(named) in resolved.world.variables:
        return
    yield Finding(
        code="CRED-SHAPE",
        severity=way.severity,
        title=text(
            "Hermes skips the line of {variable} in .env", variable=redact_for_display(named)
        ),
        subject=way.route.path,
        detail=(
            "Every message fails: no key is sent to the provider."
            if way.severity is Severity.ERROR
            else "No key is sent to the provider."
        ),
        evidence=(
            Evidence(
                written.source.place, f"{redact_for_display(named)}: no closing quotation mark"
            ),
        ),
        fix="mend-key",
        data={"name": str(named), "kind": "env"},
    )


def _stranger(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report an OpenAI or OpenRouter key that releases before 0.15 send elsewhere."""
    key, url = way.route.key, way.route.base_url
    if resolved.world.release.since(0, 15) or key is None or url is None:
        return
    address = url.value or ""
    if key.name not in _OTHERS or key.source.via or not urls.is_public(address):
        return
    if any(urls.belongs(address, one) for one in (*_OTHERS.values(), "azure.com")):
        return
    sure = key.name == "OPENROUTER_API_KEY" or key.vendor is not None
    name = likely_variable(resolved, way.own)
    yield Finding(
        code="CRED-STRANGER",
        severity=Severity.ERROR if sure else Severity.INFO,
        title=text(
            "{key} is sent to {host}", key=key.name, host=redact_for_display(urls.host(address))
        ),
        subject=way.route.path,
        detail=(
            "This release sends it to every address for which no key is set, so another company "
            "gets your key."
        ),
        evidence=(Evidence(url.source.place, f"no key is set for {redact_for_display(address)}"),),
        caused_by="CFG-KEY-ENV" if _ignores_its_key(way) else None,
        fix="name-key" if way.own and name else None,
        data={"edits": (Put((*way.own.path, "key_env"), name),) if way.own and name else ()},
        next=text(
            "Name the provider's own key with `key_env`, and renew {key} if you do not trust "
            "{host}.",
            key=key.name,
            host=redact_for_display(urls.host(address)),
        ),
    )


def _ignores_its_key(way: ConfiguredRoute) -> bool:
    """Return whether the provider names its key with `api_key_env`, which key-settings reports."""
    if way.own is None or way.own.path[0] != "providers":
        return False
    block = way.own.block
    return bool(block.get("api_key_env")) and not (block.get("key_env") or block.get("api_key"))


_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LIKE_A_KEY = pattern(r"(?i)(sk|pk|rk|gsk|hf|nvapi|xai)[-_].{8,}|eyJ.{16,}|AIza.{16,}")
_WRONG = ("api_key_env", "apiKeyEnv", "env_key", "api_key_var")
_ENDS = ("anthropic", "azure-foundry")


@check(id="key-settings", group="configuration", codes=["CFG-KEY-ENV"], by_release=True)
def key_settings(probes: Probes) -> Iterator[Finding]:
    """Are API keys named where Hermes looks for them?"""
    resolved = resolved_or_skip(probes)
    for entry in provider_entries(resolved.world):
        yield from _misnamed(resolved, entry)
        yield from _secret(resolved, entry)
    yield from _of_the_model(resolved, routes(resolved)[0])


def _works(resolved: Resolved, way: ConfiguredRoute | None) -> bool:
    """Return whether a usable key is sent anyway; before 0.15 it may belong to another provider."""
    key = way.route.key if way else None
    if key is None or key.state != "usable":
        return False
    named = key.source.via is not None or key.source.kind in ("config", "pool")
    return named or resolved.world.release.since(0, 15)


def _is_name(resolved: Resolved, text: str) -> bool:
    """Return whether the text has the form of a variable name and may be shown."""
    return bool(_NAME.fullmatch(text)) and redact_variable_name(resolved, text) == text


def _misnamed(resolved: Resolved, entry: ProviderEntry) -> Iterator[Finding]:
    """Report `api_key_env` under `providers:`, where Hermes reads `key_env` only."""
    if entry.path[0] != "providers" or entry.block.get("key_env") or entry.block.get("api_key"):
        return
    wrong = next((key for key in _WRONG if entry.block.get(key)), None)
    if wrong is None:
        return
    way = next(
        (route for route in routes(resolved) if route.own and route.own.path == entry.path), None
    )
    works = _works(resolved, way)
    path = (*entry.path, wrong)
    name = str(entry.block[wrong])
    yield Finding(
        code="CFG-KEY-ENV",
        severity=Severity.INFO if works else severity_if_broken(resolved, entry),
        title=text(
            "{provider}: Hermes ignores {setting}",
            provider=redact_for_display(entry.name),
            setting=wrong,
        ),
        subject=".".join(map(str, path)),
        detail=(
            "Hermes found a key in another variable. Under `providers:` the setting is `key_env`."
            if works
            else "Hermes sends no key, so the provider rejects requests. Under `providers:` the "
            "setting is `key_env`."
        ),
        evidence=(
            Evidence(
                resolved.world.document.source(*path).place,
                f"{wrong}: {redact_variable_name(resolved, name.strip())}",
            ),
        ),
        fix="rewrite-setting",
        data={"edits": (Rename(path, "key_env"),)},
    )


def _secret(resolved: Resolved, entry: ProviderEntry) -> Iterator[Finding]:
    """Report a `key_env` that holds the key itself instead of the name of a variable."""
    named = entry.block.get("key_env")
    if not isinstance(named, str) or not named.strip():
        return
    if _NAME.fullmatch(named.strip()) and not _LIKE_A_KEY.fullmatch(named.strip()):
        return
    path = (*entry.path, "key_env")
    inline = "api_key" in entry.block
    bare = named.strip().strip("${}").removeprefix("env:")
    edits: tuple[Edit, ...] = ()
    if _is_name(resolved, bare):
        edits = (Put(path, bare),)
    elif _LIKE_A_KEY.fullmatch(named.strip()) and not inline:
        edits = (Rename(path, "api_key"),)
    yield Finding(
        code="CFG-KEY-ENV",
        severity=severity_if_broken(resolved, entry),
        title=text(
            "{provider}: key_env is not the name of a variable",
            provider=redact_for_display(entry.name),
        ),
        subject=".".join(map(str, path)),
        detail=(
            "Hermes finds no variable of that name and sends no key, so the provider rejects "
            "requests."
        ),
        evidence=(
            Evidence(
                resolved.world.document.source(*path).place,
                f"key_env: {redact_variable_name(resolved, named.strip())}",
            ),
        ),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else "Put the key into .env and write the name of its variable into key_env.",
    )


def _of_the_model(resolved: Resolved, way: ConfiguredRoute) -> Iterator[Finding]:
    """Report keys that Hermes ignores in `model:`, or at the top of config.yaml."""
    raw, route = resolved.world.raw, way.route
    model = raw.get("model")
    block = model if isinstance(model, dict) else {}
    goes_to = route.provider.value if route.provider else None
    if goes_to in _ENDS or (route.trouble and route.trouble.kind not in ("key",)):
        return
    inline = block.get("api_key") or block.get("api")
    wrong = next((key for key in ("key_env", *_WRONG) if block.get(key)), None)
    takes = goes_to == "custom" and way.own is None and isinstance(model, dict)
    if wrong and not inline:
        name = str(block[wrong]).strip()
        edits: tuple[Edit, ...] = ()
        if takes and _is_name(resolved, name):
            edits = (Put(("model", "api_key"), f"${{{name}}}"), Drop(("model", wrong)))
        yield _finding(resolved, way, ("model", wrong), edits)
    if raw.get("api_key") and not inline:
        edits = ()
        if takes and isinstance(raw["api_key"], str):
            edits = (Put(("model", "api_key"), str(raw["api_key"])), Drop(("api_key",)))
        yield _finding(resolved, way, ("api_key",), edits)


def _finding(
    resolved: Resolved, way: ConfiguredRoute, path: tuple[str, ...], edits: tuple[Edit, ...]
) -> Finding:
    works = _works(resolved, way) or not edits
    name = ".".join(path)
    return Finding(
        code="CFG-KEY-ENV",
        severity=Severity.INFO if works else way.severity,
        title=text("Hermes ignores the key in {setting}", setting=name),
        subject=name,
        detail=(
            "Under `model:` Hermes reads the key from `api_key` only."
            if edits
            else "Hermes uses another key, or none; this line has no effect."
        ),
        evidence=(Evidence(resolved.world.document.source(*path).place, f"{name} is set"),),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next="" if edits else text("Delete {setting}.", setting=name),
    )
