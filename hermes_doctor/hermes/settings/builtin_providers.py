"""Resolve built-in providers: which one the available keys select, and what each uses.

Anthropic, Azure and Bedrock have their own rules for key and address.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor.hermes.settings import custom_providers, urls
from hermes_doctor.hermes.settings.credential_pool import Credential, Pool, seed_entry
from hermes_doctor.hermes.settings.custom_providers import require_text
from hermes_doctor.hermes.settings.document import (
    DEFAULT,
    LOGIN,
    RequestSettings,
    Source,
    Text,
    Unresolved,
    stripped_text,
)
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, section

_NOT_DETECTED = ("copilot", "lmstudio")
_OPENCODE = ("opencode-zen", "opencode-go")
_LOGIN_MODES = {
    "openai-codex": urls.RESPONSES,
    "xai-oauth": urls.RESPONSES,
    "minimax-oauth": urls.MESSAGES,
    "nous": urls.CHAT,
    "qwen-oauth": urls.CHAT,
    "copilot": urls.CHAT,
}
"""The protocols of providers whose login has no address of its own."""
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
    if release.since(0, 17) and pool(inputs, "openrouter").entries:
        return "openrouter"
    for name, facts in release.registry.items():
        asked = facts["keys"] if facts["kind"] == "api_key" and name not in _NOT_DETECTED else ()
        if any(release.is_usable(inputs.getenv(key)) for key in asked):
            return name
    if login and release.since(0, 18):
        return login
    return "bedrock" if has_aws(inputs) else None


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


def pool(inputs: SettingInputs, name: str) -> Pool:
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
    variable = variable.without_slash()
    for key in ANTHROPIC_KEYS if name == "anthropic" else facts["keys"]:
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

    failure = _state(inputs, "zai").get("detected_endpoint")
    same = hashlib.sha256(token.encode()).hexdigest()[:16]
    if isinstance(failure, dict) and failure.get("base_url") and failure.get("key_hash") == same:
        return Text(
            str(failure["base_url"]), Source(LOGIN, "the endpoint found for zai", "auth.json")
        )
    return ABSENT


def from_pool(
    inputs: SettingInputs, name: str, model: dict[Any, Any], found: Pool
) -> RequestSettings:
    """Return what a request uses with the entry that the pool selects."""
    entry = found.select()
    assert entry is not None
    others = [other.token for other in found.entries if other is not entry and other.token]
    url = entry.base_url.without_slash()
    facts = inputs.release.registry.get(name)
    default = Text(facts["base_url"] if facts else "", Source(DEFAULT, name))
    address = require_text(model.get("base_url"), "model.base_url").without_slash()
    written = stripped_text(model.get("provider")).lower()
    mode = urls.CHAT
    if name == "anthropic":
        mode, url = urls.MESSAGES, _anthropic_address(inputs, model) or url or ANTHROPIC_ADDRESS
    elif name in _LOGIN_MODES:
        mode, url = _LOGIN_MODES[name], url or default
    elif name == "openrouter":
        url = url or Text(inputs.release.addresses["openrouter"], Source(DEFAULT, name))
    elif name == "xai":
        mode = urls.RESPONSES
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
    base_url = base_url.without_slash()
    if name == "anthropic":
        url = base_url or _anthropic_address(inputs, model) or ANTHROPIC_ADDRESS
        key = key or anthropic_key(inputs)
        if not key:
            raise Unresolved("key", "no key for anthropic is set")
        return RequestSettings(name, url, urls.MESSAGES, key)
    facts = inputs.release.registry.get(name)
    if facts is None:
        return None
    if name == "azure-foundry":
        return resolve_azure(inputs, model, base_url, key)
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
        address = variable.without_slash() or default
    url = base_url or address
    key, others = (key, [found] if found else []) if key else (found, [])
    if name == "xai":
        mode = urls.RESPONSES
    else:
        configured = custom_providers.api_mode(inputs, model.get("api_mode"))
        mode = configured or urls.mode(url, inputs.release) or urls.CHAT
    return RequestSettings(name, url.without_slash(), mode, key, [], others)


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
        able = next(pool(inputs, name).available(), None)
        if able and inputs.release.is_usable(able.token):
            key = able.token
    if not key and name == "lmstudio":
        key = Text("dummy-lm-api-key", Source(DEFAULT, "no key"))
    variable = inputs.getenv(facts["url"]) if facts.get("url") else ABSENT
    url = _address(inputs, name, key, variable.without_slash())
    url = _lmstudio(url) if name == "lmstudio" and inputs.release.since(0, 18) else url
    return key, url.without_slash()


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
        return resolve_anthropic(inputs, model)
    if name == "bedrock":
        return resolve_bedrock(inputs, model, requested)
    if facts["kind"] != "api_key":
        return None
    key, url = credentials(inputs, name)
    if inputs.release.since(0, 19) and not inputs.release.is_usable(key):
        raise Unresolved("key", f"no usable key for {name}: set {', '.join(facts['keys'])}")
    written = stripped_text(model.get("provider")).lower()
    address = require_text(model.get("base_url"), "model.base_url")
    ignored = [address] if address and written != name else []
    if written == name and address.rstrip("/"):
        url = address.without_slash()
    if name == "copilot":
        mode = urls.CHAT
    elif name == "xai":
        mode = urls.RESPONSES
    else:
        mode = _mode(inputs, name, model, url, written)
    return RequestSettings(name, _shaped(inputs, name, mode, url), mode, key, ignored)


ANTHROPIC_KEYS = ("ANTHROPIC_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY")
ANTHROPIC_ADDRESS = Text("https://api.anthropic.com", Source(DEFAULT, "anthropic"))
_AWS = ("AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")
_AWS_NAMES = ("bedrock", "aws", "aws-bedrock", "amazon-bedrock", "amazon")


def has_aws(inputs: SettingInputs) -> bool:
    """Tell whether AWS credentials are set."""
    keys = inputs.getenv("AWS_ACCESS_KEY_ID") and inputs.getenv("AWS_SECRET_ACCESS_KEY")
    return bool(keys or inputs.getenv("AWS_BEARER_TOKEN_BEDROCK") or inputs.getenv("AWS_PROFILE"))


def resolve_anthropic(inputs: SettingInputs, model: dict[Any, Any]) -> RequestSettings:
    """Resolve Anthropic's own API or a compatible address."""
    address = require_text(model.get("base_url"), "model.base_url").without_slash()
    trusted = _anthropic_address(inputs, model)
    url = trusted or ANTHROPIC_ADDRESS
    key = _azure_key(inputs, model) if "azure.com" in url.lower() else anthropic_key(inputs)
    if not key:
        raise Unresolved("key", "no key for anthropic is set")
    ignored = [address] if address and not trusted else []
    return RequestSettings("anthropic", url, urls.MESSAGES, key, ignored)


def _anthropic_address(inputs: SettingInputs, model: dict[Any, Any]) -> Text:
    """Return `model.base_url` if it belongs to Anthropic's entry and may speak its protocol."""
    address = require_text(model.get("base_url"), "model.base_url").without_slash()
    own = stripped_text(model.get("provider")).lower() == "anthropic"
    return address if own and urls.may_be_anthropic(address, inputs.release) else ABSENT


def anthropic_key(inputs: SettingInputs) -> Text:
    """Return the first of Anthropic's variables that is set."""
    return next((text for name in ANTHROPIC_KEYS if (text := inputs.getenv(name))), ABSENT)


def _azure_key(inputs: SettingInputs, model: dict[Any, Any]) -> Text:
    hints = [stripped_text(model.get(key)) for key in ("key_env", "api_key_env")]
    named = [inputs.getenv(hint) for hint in hints if hint]
    fixed = [inputs.getenv("AZURE_ANTHROPIC_KEY"), inputs.getenv("ANTHROPIC_API_KEY")]
    able = [*named, stripped_text(model.get("api_key")), *fixed]
    return next((one for one in able if one), ABSENT)


def resolve_azure_anthropic(inputs: SettingInputs, base_url: Text, key: Text) -> RequestSettings:
    """Resolve Anthropic's models at an Azure address of a fallback entry."""
    key = key or inputs.getenv("AZURE_ANTHROPIC_KEY") or inputs.getenv("ANTHROPIC_API_KEY")
    return RequestSettings("anthropic", base_url.without_slash(), urls.MESSAGES, key)


def resolve_azure(
    inputs: SettingInputs, model: dict[Any, Any], base_url: Text, key: Text
) -> RequestSettings:
    """Resolve Azure Foundry, whose address the operator must set."""
    own = stripped_text(model.get("provider")).lower() == "azure-foundry"
    address = stripped_text(model.get("base_url")) if own else ABSENT
    mode = (custom_providers.api_mode(inputs, model.get("api_mode")) if own else None) or urls.CHAT
    name = stripped_text(model.get("default")).lower().rpartition("/")[2]
    begins = tuple(inputs.release.topic("azure"))
    if mode != urls.MESSAGES and name.startswith(begins):
        mode = urls.RESPONSES
    variable = inputs.getenv("AZURE_FOUNDRY_BASE_URL")
    able = [one.without_slash() for one in (base_url, address, variable) if one.rstrip("/")]
    if not able:
        raise Unresolved("address", "azure-foundry needs a base_url")
    url = able[0]
    if mode == urls.MESSAGES:
        url = url.like(re.sub(r"/v1/?$", "", url))
    entra = own and stripped_text(model.get("auth_mode")).lower() == "entra_id"
    if entra and not key and inputs.release.since(0, 15):
        key = Text("entra", Source(LOGIN, "Microsoft Entra ID"))
    key = key or inputs.environment_first("AZURE_FOUNDRY_API_KEY")
    if not key:
        raise Unresolved("key", "no key for azure-foundry: set AZURE_FOUNDRY_API_KEY")
    return RequestSettings("azure-foundry", url, mode, key, able[1:])


def resolve_bedrock(
    inputs: SettingInputs, model: dict[Any, Any], requested: str
) -> RequestSettings:
    """Resolve AWS Bedrock, with the credentials that its own library finds."""
    if requested not in _AWS_NAMES and not has_aws(inputs):
        raise Unresolved("key", "no credentials of AWS are set")
    settings = section(inputs.config, "bedrock")
    able = [
        stripped_text(settings.get("region")),
        inputs.getenv("AWS_REGION"),
        inputs.getenv("AWS_DEFAULT_REGION"),
        Text("us-east-1", Source(DEFAULT, "bedrock")),
    ]
    region = next(one for one in able if one)
    name = stripped_text(model.get("default")).lower()
    claude = any(name.startswith(f"{r}anthropic.claude") for r in inputs.release.topic("bedrock"))
    bearer = inputs.release.since(0, 19) and inputs.getenv("AWS_BEARER_TOKEN_BEDROCK")
    mode = urls.MESSAGES if claude and not bearer else "bedrock_converse"
    key = next((inputs.getenv(name) for name in _AWS if inputs.getenv(name)), None)
    source = key.source if key else Source(LOGIN, "AWS's own chain")
    url = region.like(f"https://bedrock-runtime.{region}.amazonaws.com")
    return RequestSettings("bedrock", url, mode, Text("aws-sdk", source))
