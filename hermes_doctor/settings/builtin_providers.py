"""Resolve built-in providers: which one the available keys select, and what each uses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor.settings import cloud_providers, custom_providers, urls
from hermes_doctor.settings.credential_pool import Credential, Pool, seed_entry
from hermes_doctor.settings.custom_providers import require_text
from hermes_doctor.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.settings.outcome import RequestSettings, Unresolved
from hermes_doctor.settings.sourced_text import DEFAULT, LOGIN, Source, Text, stripped_text

_NOT_DETECTED = ("copilot", "lmstudio")
_OPENCODE = ("opencode-zen", "opencode-go")
_OAUTH = ("oauth_device_code", "oauth_external", "oauth_minimax")


def auto_provider(inputs: SettingInputs, written: str) -> str | None:
    """Return the provider that `auto` selects."""
    release = inputs.release
    login = _login(inputs)
    if release.since(0, 18):
        if written in release.registry:
            return written
    elif login:
        return login
    if any(release.is_usable(inputs.getenv(n)) for n in ("OPENAI_API_KEY", "OPENROUTER_API_KEY")):
        return "openrouter"
    if release.since(0, 17):
        routed = pool(inputs, "openrouter")
        if routed and routed.entries:
            return "openrouter"
    for name, facts in release.registry.items():
        asked = facts["keys"] if facts["kind"] == "api_key" and name not in _NOT_DETECTED else ()
        if any(release.is_usable(inputs.getenv(key)) for key in asked):
            return name
    if login and release.since(0, 18):
        return login
    return "bedrock" if cloud_providers.has_aws(inputs) else None


def _login(inputs: SettingInputs) -> str | None:
    """Return the provider that the user is logged in to."""
    name = inputs.store.get("active_provider")
    known = isinstance(name, str) and name in inputs.release.registry
    return name if known and _state(inputs, str(name)) else None


def _state(inputs: SettingInputs, name: str) -> dict[str, Any]:
    for store in (inputs.store, inputs.root_store):
        found = section(store, "providers", name)
        if found:
            return found
    return {}


def pool(inputs: SettingInputs, name: str) -> Pool | None:
    """Return the credential pool of a built-in provider, including keys from variables."""
    return Pool(inputs, name, list(_seeds(inputs, name)))


def _seeds(inputs: SettingInputs, name: str) -> Iterator[Credential]:
    if name == "openrouter":
        token = inputs.dotenv_first("OPENROUTER_API_KEY")
        if token:
            default = Source(DEFAULT, "OpenRouter")
            address = Text(inputs.release.addresses["openrouter"], default)
            yield seed_entry("env:OPENROUTER_API_KEY", token, address)
        return
    facts = inputs.release.registry.get(name)
    if facts is None or facts["kind"] != "api_key":
        return
    variable = inputs.dotenv_first(facts["url"]) if facts.get("url") else ABSENT
    variable = variable.like(variable.rstrip("/"))
    for key in cloud_providers.ANTHROPIC if name == "anthropic" else facts["keys"]:
        token = inputs.dotenv_first(key)
        if token:
            yield seed_entry(f"env:{key}", token, _address(inputs, name, token, variable))


def _address(inputs: SettingInputs, name: str, token: str, variable: Text) -> Text:
    """Return a provider's address: from its variable, from the kind of key, or the built-in one."""
    default = Text(inputs.release.registry[name]["base_url"], Source(DEFAULT, name))
    if variable:
        return variable
    if name in ("kimi-coding", "kimi-coding-cn") and token.startswith("sk-kimi-"):
        return Text(inputs.release.addresses["kimi-code"], Source(DEFAULT, "Kimi's coding plan"))
    if name == "zai" and token:
        return _detected(inputs, token) or default
    return default


def _detected(inputs: SettingInputs, token: str) -> Text:
    """Return the address that Hermes found to accept this key of Z.AI."""
    import hashlib

    found = _state(inputs, "zai").get("detected_endpoint")
    same = hashlib.sha256(token.encode()).hexdigest()[:16]
    if isinstance(found, dict) and found.get("base_url") and found.get("key_hash") == same:
        return Text(
            str(found["base_url"]), Source(LOGIN, "the endpoint found for zai", "auth.json")
        )
    return ABSENT


def from_pool(
    inputs: SettingInputs, name: str, model: dict[Any, Any], found: Pool
) -> RequestSettings:
    """Return what a request uses with the entry that the pool selects."""
    entry = found.select()
    assert entry is not None
    others = [one.token for one in found.entries if one is not entry and one.token]
    url = entry.base_url.like(entry.base_url.rstrip("/"))
    facts = inputs.release.registry.get(name)
    default = Text(facts["base_url"] if facts else "", Source(DEFAULT, name))
    address = require_text(model.get("base_url"), "model.base_url")
    address = address.like(address.rstrip("/"))
    written = stripped_text(model.get("provider")).lower()
    mode = urls.CHAT
    if name == "anthropic":
        mode = urls.MESSAGES
        own = written == name and urls.may_be_anthropic(address, inputs.release)
        url = (
            (address if own else ABSENT) or url or Text(cloud_providers.HOME, Source(DEFAULT, name))
        )
    elif name in ("openai-codex", "xai-oauth"):
        mode, url = urls.RESPONSES, url or default
    elif name == "minimax-oauth":
        mode, url = urls.MESSAGES, url or default
    elif name == "openrouter":
        url = url or Text(inputs.release.addresses["openrouter"], Source(DEFAULT, name))
    elif name == "xai":
        mode = urls.RESPONSES
    elif name in ("nous", "qwen-oauth") or name == "copilot":
        url = url or default
    elif name != "azure-foundry":
        if facts and written == name and url == default.rstrip("/") and address:
            url = address
        mode = _mode(inputs, name, model, url, written)
    url = _shaped(inputs, name, mode, url)
    ignored = [one for one in (address, entry.base_url) if one and one.source != url.source]
    ignored = [one for one in ignored if one.source.kind != DEFAULT]
    return RequestSettings(name, url, _app_server(name, mode, model), entry.token, ignored, others)


def _mode(inputs: SettingInputs, name: str, model: dict[Any, Any], url: str, written: str) -> str:
    if name in _OPENCODE:
        return _opencode(inputs, name, stripped_text(model.get("default")))
    configured = custom_providers.api_mode(inputs, model.get("api_mode"))
    if configured and (not written or written == name):
        return configured
    return urls.mode(url, inputs.release) or urls.CHAT


def _opencode(inputs: SettingInputs, name: str, model: str) -> str:
    modes = inputs.release.topic("opencode")[name]
    bare = model.lower().removeprefix(f"{name}/")
    begins = [begin for begin in modes if begin and bare.startswith(begin)]
    return str(modes[max(begins, key=len, default="")] if bare else urls.CHAT)


def _shaped(inputs: SettingInputs, name: str, mode: str, url: Text) -> Text:
    """Return the address in the form that the provider's client needs."""
    if name in _OPENCODE:
        if mode == urls.MESSAGES:
            return url.like(re.sub(r"/v1/?$", "", url))
        healed = inputs.release.since(0, 18, 1) and urls.belongs(url, "opencode.ai")
        return url.like(f"{url}/v1") if healed and not url.endswith("/v1") else url
    if name == "lmstudio" and inputs.release.since(0, 18):
        return _lmstudio(url)
    return url


def _lmstudio(url: Text) -> Text:
    root = url.strip().rstrip("/")
    for end in ("/api/v1", "/api", "/v1"):
        if root.endswith(end):
            root = root[: -len(end)].rstrip("/")
            break
    return url.like((root or "http://127.0.0.1:1234") + "/v1")


def _app_server(name: str, mode: str, model: dict[Any, Any]) -> str:
    runtime = stripped_text(model.get("openai_runtime")).lower()
    chosen = name in ("openai", "openai-codex") and runtime == "codex_app_server"
    return "codex_app_server" if chosen else mode


def with_explicit_settings(
    inputs: SettingInputs, name: str, model: dict[Any, Any], base_url: Text, key: Text
) -> RequestSettings | None:
    """Resolve a built-in provider with the address or key of a fallback entry."""
    base_url = base_url.like(base_url.rstrip("/"))
    if name == "anthropic":
        address = require_text(model.get("base_url"), "model.base_url")
        address = address.like(address.rstrip("/"))
        own = stripped_text(model.get("provider")).lower() == name
        own = own and urls.may_be_anthropic(address, inputs.release)
        url = (
            base_url
            or (address if own else ABSENT)
            or Text(cloud_providers.HOME, Source(DEFAULT, name))
        )
        key = key or cloud_providers.anthropic_key(inputs)
        if not key:
            raise Unresolved("key", "no key for anthropic is set")
        return RequestSettings(name, url, urls.MESSAGES, key)
    facts = inputs.release.registry.get(name)
    if facts is None:
        return None
    if name == "azure-foundry":
        return cloud_providers.azure(inputs, model, base_url, key)
    if facts["kind"] != "api_key":
        if facts["kind"] not in _OAUTH or name not in ("openai-codex", "nous"):
            return None
        if not key:
            raise Unresolved("login", f"{name} needs a login")
        mode = urls.RESPONSES if name == "openai-codex" else urls.CHAT
        default = Text(facts["base_url"], Source(DEFAULT, name))
        return RequestSettings(name, base_url or default, mode, key)
    found, address = credentials(inputs, name)
    variable = inputs.getenv(facts["url"]) if facts.get("url") else ABSENT
    if name not in ("kimi-coding", "kimi-coding-cn"):
        default = Text(facts["base_url"], Source(DEFAULT, name))
        address = variable.like(variable.rstrip("/")) or default
    url = base_url or address
    key, others = (key, [found] if found else []) if key else (found, [])
    if name == "xai":
        mode = urls.RESPONSES
    else:
        configured = custom_providers.api_mode(inputs, model.get("api_mode"))
        mode = configured or urls.mode(url, inputs.release) or urls.CHAT
    return RequestSettings(name, url.like(url.rstrip("/")), mode, key, [], others)


def credentials(inputs: SettingInputs, name: str) -> tuple[Text, Text]:
    """Return key and address of a provider with a plain key, without its pool."""
    facts = inputs.release.registry[name]
    key = ABSENT
    for variable in facts["keys"]:
        newer = inputs.release.since(0, 18)
        found = inputs.dotenv_first(variable) if newer else inputs.environment_first(variable)
        if inputs.release.is_usable(found):
            key = found
            break
    if not key:
        able = next(pool(inputs, name).available(), None)  # type: ignore[union-attr]
        if able and inputs.release.is_usable(able.token):
            key = able.token
    if not key and name == "lmstudio":
        key = Text("dummy-lm-api-key", Source(DEFAULT, "no key"))
    variable = inputs.getenv(facts["url"]) if facts.get("url") else ABSENT
    url = _address(inputs, name, key, variable.like(variable.rstrip("/")))
    url = _lmstudio(url) if name == "lmstudio" and inputs.release.since(0, 18) else url
    return key, url.like(url.rstrip("/"))


def without_pool(
    inputs: SettingInputs, name: str, model: dict[Any, Any], requested: str
) -> RequestSettings | None:
    """Resolve a provider whose pool is empty; None means OpenRouter is tried next."""
    facts = inputs.release.registry.get(name)
    if facts is None:
        return None
    if facts["kind"] in _OAUTH or facts["kind"] == "external_process":
        if requested == "auto" and facts["kind"] != "external_process" and name != "minimax-oauth":
            return None
        raise Unresolved("login", f"{name} needs a login, and auth.json has none")
    if name == "anthropic":
        return cloud_providers.anthropic(inputs, model)
    if name == "bedrock":
        return cloud_providers.bedrock(inputs, model, requested)
    if facts["kind"] != "api_key":
        return None
    key, url = credentials(inputs, name)
    if inputs.release.since(0, 19) and not inputs.release.is_usable(key):
        raise Unresolved("key", f"no usable key for {name}: set {', '.join(facts['keys'])}")
    written = stripped_text(model.get("provider")).lower()
    address = require_text(model.get("base_url"), "model.base_url")
    ignored = [address] if address and written != name else []
    if written == name and address.rstrip("/"):
        url = address.like(address.rstrip("/"))
    if name == "copilot":
        mode = urls.CHAT
    elif name == "xai":
        mode = urls.RESPONSES
    else:
        mode = _mode(inputs, name, model, url, written)
    return RequestSettings(name, _shaped(inputs, name, mode, url), mode, key, ignored)
