"""Check that API keys are named in settings where Hermes looks for them."""

from __future__ import annotations

from collections.abc import Iterator

from hermes_doctor.api import (
    Drop,
    Edit,
    Evidence,
    Finding,
    Own,
    Probes,
    Put,
    Rename,
    Resolved,
    Severity,
    Way,
    check,
    configured,
    own_providers,
    pattern,
    said,
    said_variable,
    text,
    users,
    ways,
)

_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LIKE_A_KEY = pattern(r"(?i)(sk|pk|rk|gsk|hf|nvapi|xai)[-_].{8,}|eyJ.{16,}|AIza.{16,}")
_WRONG = ("api_key_env", "apiKeyEnv", "env_key", "api_key_var")
_ENDS = ("anthropic", "azure-foundry")


@check(id="key-settings", group="configuration", codes=["CFG-KEY-ENV"], by_release=True)
def key_settings(probes: Probes) -> Iterator[Finding]:
    """Are API keys named where Hermes looks for them?"""
    found = configured(probes)
    for entry in own_providers(found.world):
        yield from _misnamed(found, entry)
        yield from _secret(found, entry)
    yield from _of_the_model(found, ways(found)[0])


def _works(found: Resolved, way: Way | None) -> bool:
    """Return whether a usable key is sent anyway; before 0.15 it may belong to another provider."""
    key = way.route.key if way else None
    if key is None or key.state != "usable":
        return False
    named = key.source.via is not None or key.source.kind in ("config", "pool")
    return named or found.world.release.since(0, 15)


def _is_name(found: Resolved, text: str) -> bool:
    """Return whether the text has the form of a variable name and may be shown."""
    return bool(_NAME.fullmatch(text)) and said_variable(found, text) == text


def _misnamed(found: Resolved, entry: Own) -> Iterator[Finding]:
    """Report `api_key_env` under `providers:`, where Hermes reads `key_env` only."""
    if entry.path[0] != "providers" or entry.block.get("key_env") or entry.block.get("api_key"):
        return
    wrong = next((key for key in _WRONG if entry.block.get(key)), None)
    if wrong is None:
        return
    way = next((one for one in ways(found) if one.own and one.own.path == entry.path), None)
    works = _works(found, way)
    path = (*entry.path, wrong)
    name = str(entry.block[wrong])
    yield Finding(
        code="CFG-KEY-ENV",
        severity=Severity.INFO if works else users(found, entry),
        title=text(
            "{provider}: Hermes ignores {setting}", provider=said(entry.name), setting=wrong
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
                found.world.document.source(*path).place,
                f"{wrong}: {said_variable(found, name.strip())}",
            ),
        ),
        fix="rewrite-setting",
        data={"edits": (Rename(path, "key_env"),)},
    )


def _secret(found: Resolved, entry: Own) -> Iterator[Finding]:
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
    if _is_name(found, bare):
        edits = (Put(path, bare),)
    elif _LIKE_A_KEY.fullmatch(named.strip()) and not inline:
        edits = (Rename(path, "api_key"),)
    yield Finding(
        code="CFG-KEY-ENV",
        severity=users(found, entry),
        title=text("{provider}: key_env is not the name of a variable", provider=said(entry.name)),
        subject=".".join(map(str, path)),
        detail=(
            "Hermes finds no variable of that name and sends no key, so the provider rejects "
            "requests."
        ),
        evidence=(
            Evidence(
                found.world.document.source(*path).place,
                f"key_env: {said_variable(found, named.strip())}",
            ),
        ),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next=""
        if edits
        else "Put the key into .env and write the name of its variable into key_env.",
    )


def _of_the_model(found: Resolved, way: Way) -> Iterator[Finding]:
    """Report keys that Hermes ignores in `model:`, or at the top of config.yaml."""
    raw, route = found.world.raw, way.route
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
        if takes and _is_name(found, name):
            edits = (Put(("model", "api_key"), f"${{{name}}}"), Drop(("model", wrong)))
        yield _finding(found, way, ("model", wrong), edits)
    if raw.get("api_key") and not inline:
        edits = ()
        if takes and isinstance(raw["api_key"], str):
            edits = (Put(("model", "api_key"), str(raw["api_key"])), Drop(("api_key",)))
        yield _finding(found, way, ("api_key",), edits)


def _finding(found: Resolved, way: Way, path: tuple[str, ...], edits: tuple[Edit, ...]) -> Finding:
    works = _works(found, way) or not edits
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
        evidence=(Evidence(found.world.document.source(*path).place, f"{name} is set"),),
        fix="rewrite-setting" if edits else None,
        data={"edits": edits},
        next="" if edits else text("Delete {setting}.", setting=name),
    )
