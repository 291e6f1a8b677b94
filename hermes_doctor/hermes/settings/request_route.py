"""Resolve provider, address, protocol, key and headers of a request in the same order as Hermes.

Each method follows one code path of Hermes. Values that are set but not used are kept as well, so
that an answer can list what it overrides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from hermes_doctor.hermes.settings import builtin_providers, custom_providers, urls
from hermes_doctor.hermes.settings.custom_providers import CustomProvider, Malformed, require_text
from hermes_doctor.hermes.settings.document import (
    DEFAULT,
    NO_KEY,
    RequestSettings,
    Source,
    Text,
    Unresolved,
    missing_key,
    stripped_text,
)
from hermes_doctor.hermes.settings.inputs import ABSENT, SettingInputs, section

_VERTEX = ("vertex", "google-vertex", "vertex-ai", "gcp-vertex", "vertexai")
_CLOUDS = ("openrouter.ai", "anthropic.com", "openai.com")


def resolve(
    inputs: SettingInputs,
    requested: Text,
    base_url: Text = ABSENT,
    key: Text = ABSENT,
) -> RequestSettings:
    """Resolve a provider by name, with the address and key of a fallback entry."""
    try:
        return _Resolver(inputs, requested, base_url, key).resolve()
    except Malformed as error:
        raise Unresolved("malformed", str(error), falls_back=False) from None


def model_config(inputs: SettingInputs) -> dict[Any, Any]:
    """Return `model:` as the resolver reads it."""
    model = inputs.config.get("model")
    if isinstance(model, str):
        return {"default": stripped_text(model)} if model.strip() else {}
    if not isinstance(model, dict):
        return {}
    made = dict(model)
    if not made.get("default") and made.get("model"):
        made["default"] = made["model"]
    require_text(made.get("default"), "model.default")
    require_text(made.get("base_url"), "model.base_url")
    return made


def requested_provider(inputs: SettingInputs, *, here: bool = True) -> tuple[Text, list[Text]]:
    """Return the requested provider, and the other settings that request one.

    In older releases, the variable comes first if the gateway itself asks (`here`).
    """
    try:
        named = model_config(inputs).get("provider")
    except Malformed as error:
        raise Unresolved("malformed", str(error), falls_back=False) from None
    configured = stripped_text(named) if isinstance(named, str) else ABSENT
    asked = [configured, inputs.getenv("HERMES_INFERENCE_PROVIDER")]
    if here and not inputs.release.since(0, 15):
        asked.reverse()
    able = [one.like(one.lower()) for one in asked if one]
    return (able[0], able[1:]) if able else (Text("auto"), [])


def usable(inputs: SettingInputs, candidates: Iterable[Text]) -> tuple[Text, list[Text]]:
    """Return the first candidate that Hermes accepts as a key, and the others that are set."""
    able = [candidate for candidate in candidates if candidate]
    chosen = next((one for one in able if inputs.release.is_usable(one)), ABSENT)
    return chosen, [one for one in able if one.source != chosen.source]


class _Resolver:
    """Resolves one request, in the order of Hermes' own code."""

    def __init__(self, inputs: SettingInputs, requested: Text, base_url: Text, key: Text) -> None:
        self.inputs = inputs
        self.release = inputs.release
        self.requested = requested.like(requested.strip().lower())
        self.base_url = base_url.like(base_url.strip())
        self.key = key.like(key.strip())

    @cached_property
    def model(self) -> dict[Any, Any]:
        return model_config(self.inputs)

    @cached_property
    def written(self) -> str:
        return stripped_text(self.model.get("provider")).lower()

    @cached_property
    def address(self) -> Text:
        return require_text(self.model.get("base_url"), "model.base_url")

    def resolve(self) -> RequestSettings:
        self._is_enabled()
        if self.requested == "moa" and self.release.since(0, 18):
            virtual = Text("moa-virtual-provider", Source(DEFAULT, "no key"))
            return RequestSettings("moa", Text("moa://local"), urls.CHAT, virtual, [], [])
        if self.requested == "anthropic" and "azure.com" in self.base_url:
            return builtin_providers.resolve_azure_anthropic(self.inputs, self.base_url, self.key)
        if self.requested == "azure-foundry":
            return builtin_providers.resolve_azure(self.inputs, self.model, self.base_url, self.key)
        if self.requested in _VERTEX and self.release.since(0, 18):
            raise Unresolved(
                "login", "Vertex AI needs a Google login, which hermes-doctor does not check"
            )
        return self._custom() or self._anonymous() or self._builtin()

    def _is_enabled(self) -> None:
        blocks = self.inputs.config.get("providers")
        block = blocks.get(str(self.requested)) if isinstance(blocks, dict) else None
        if not custom_providers.is_enabled(block, self.inputs):
            raise Unresolved(
                "disabled", f"providers.{self.requested}.enabled is false", falls_back=False
            )

    def _means_custom(self, name: str) -> bool:
        """Tell whether a name is `custom` or, in newer releases, an alias of it."""
        if name == "custom":
            return True
        return self.release.since(0, 15) and self.release.provider(name) == "custom"

    def _custom(self) -> RequestSettings | None:
        """Resolve a custom provider, or the bare address of a fallback entry."""
        if self._means_custom(self.requested) and self.base_url:
            url = self.base_url.without_slash()
            pooled = self._pooled(url, None, None)
            if pooled:
                return pooled
            key, others = usable(self.inputs, [self.key, *self._env_keys(url)])
            return RequestSettings("custom", url, self._mode(url), key or NO_KEY, [], others)
        custom_provider = custom_providers.find(self.inputs, self.requested)
        if custom_provider is None:
            return None
        url = self.base_url or custom_provider.base_url
        url = url.without_slash()
        if not url:
            return None
        pooled = self._pooled(url, custom_provider.api_mode, custom_provider.name)
        return pooled or self._of_entry(custom_provider, url)

    def _of_entry(self, custom_provider: CustomProvider, url: Text) -> RequestSettings:
        named = self.inputs.named_variable(custom_provider.key_env)
        key, others = usable(
            self.inputs, [self.key, custom_provider.api_key, named, *self._env_keys(url)]
        )
        mode = custom_provider.api_mode or self._mode(url)
        missing = bool(custom_provider.key_env) and not named and urls.is_public(url)
        instead = missing_key(custom_provider.key_env) if missing else NO_KEY
        return RequestSettings(
            "custom", url, mode, key or instead, self._ignored(url, custom_provider), others
        )

    def _ignored(self, url: Text, custom_provider: CustomProvider) -> list[Text]:
        """Return the addresses that are set for this provider but not used."""
        candidates = [custom_provider.base_url, *custom_provider.other_urls, self.address]
        return [address for address in candidates if address and address.source != url.source]

    def _env_keys(self, url: str) -> list[Text]:
        """Return other providers' keys that may be sent to an address; older releases send any."""
        getenv, gated = self.inputs.getenv, self.release.since(0, 15)
        openai = urls.belongs(url, "openai.com") or urls.belongs(url, "openai.azure.com")
        found = []
        if openai or not gated:
            found.append(getenv("OPENAI_API_KEY"))
        if urls.belongs(url, "openrouter.ai") or not gated:
            found.append(getenv("OPENROUTER_API_KEY"))
        vendor = urls.vendor_variable(url) if gated else None
        return [*found, getenv(vendor)] if vendor else found

    def _pooled(self, url: Text, mode: str | None, name: str | None) -> RequestSettings | None:
        pool = custom_providers.pool_for(self.inputs, url, name)
        entry = pool.select() if pool else None
        if pool is None or entry is None or not entry.token:
            return None
        others = [other.token for other in pool.entries if other is not entry and other.token]
        ignored = [self.address] if self.address and self.address.source != url.source else []
        chosen = mode or self._mode(url)
        return RequestSettings(
            "custom", url, chosen, entry.token, ignored, [*others, *self._env_keys(url)]
        )

    def _mode(self, url: str) -> str:
        return urls.mode(url, self.release) or urls.CHAT

    def _anonymous(self) -> RequestSettings | None:
        """Resolve an address without a provider, which newer releases use."""
        if self.base_url or self.key or not self.release.since(0, 18) or not self.address:
            return None
        if self.written not in ("auto", ""):
            return None
        if any(urls.belongs(self.address, cloud) for cloud in _CLOUDS):
            return None
        return self._openrouter()

    def _builtin(self) -> RequestSettings:
        name = self._provider()
        given = self.base_url or self.key
        if given:
            explicit = builtin_providers.with_explicit_settings(
                self.inputs, name, self.model, self.base_url, self.key
            )
            if explicit:
                return explicit
        if name != "openrouter" or self._may_pool():
            pool = builtin_providers.pool(self.inputs, name)
            entry = pool.select()
            if entry and entry.token:
                return builtin_providers.from_pool(self.inputs, name, self.model, pool)
        return (
            builtin_providers.without_pool(self.inputs, name, self.model, self.requested)
            or self._openrouter()
        )

    def _may_pool(self) -> bool:
        elsewhere = (
            self.base_url
            or self.inputs.getenv("OPENAI_BASE_URL")
            or self.inputs.getenv("OPENROUTER_BASE_URL")
            or (self.address and self.written in ("auto", "custom"))
        )
        return self.requested in ("openrouter", "auto") and not elsewhere and not self.key

    def _provider(self) -> str:
        """Return the built-in provider of this name, or the one that the available keys select."""
        meant = self.release.provider(self.requested)
        if meant:
            return meant
        if self.requested != "auto":
            raise Unresolved("unknown", f"no provider is called {self.requested!s}")
        if self.key or self.base_url:
            return "openrouter"
        found = builtin_providers.auto_provider(self.inputs, self.written)
        if found is None:
            raise Unresolved("none", "no provider is configured, and no key of one is set")
        return found

    def _openrouter(self) -> RequestSettings:
        """Resolve OpenRouter, or the address that replaces it."""
        getenv = self.inputs.getenv
        asked = "custom" if self._means_custom(self.requested) else str(self.requested)
        router, own = getenv("OPENROUTER_BASE_URL"), getenv("CUSTOM_BASE_URL")
        configured = self.address if self._trusts_address(asked) else ABSENT
        default = Text(self.release.addresses["openrouter"], Source(DEFAULT, "OpenRouter"))
        able = [one for one in (self.base_url, own, configured, router, default) if one]
        url = able[0].like(able[0].rstrip("/"))
        key, others = usable(self.inputs, self._router_keys(url, asked, router, bool(configured)))
        provider = "custom" if asked == "custom" else "openrouter"
        mode = custom_providers.api_mode(self.inputs, self.model.get("api_mode"))
        if provider == "custom":
            named = str(self.requested) if asked != self.requested else None
            pooled = self._pooled(url, mode, named)
            if pooled:
                return pooled
            if not key and not urls.belongs(url, "openrouter.ai"):
                key = NO_KEY
            if mode == urls.RESPONSES and self.release.since(0, 18):
                mode = None
        ignored = [one for one in (*able[1:], self.address) if one.source.kind != DEFAULT and one]
        ignored = [one for one in ignored if one.source != url.source]
        unique = list({one.source: one for one in ignored}.values())
        return RequestSettings(provider, url, mode or self._mode(url), key, unique, others)

    def _trusts_address(self, asked: str) -> bool:
        """Tell whether `model.base_url` applies to a provider that is not named."""
        if not self.address or self.base_url:
            return False
        named = self.written if isinstance(self.model.get("provider"), str) else ""
        if asked == "auto":
            return named in ("", "auto")
        if asked != "custom":
            return False
        if self._means_custom(named):
            return True
        return not urls.belongs(self.address, "openrouter.ai") and urls.is_loopback(self.address)

    def _router_keys(self, url: Text, asked: str, router: Text, configured: bool) -> list[Text]:
        getenv, gated = self.inputs.getenv, self.release.since(0, 15)
        mirror = asked == "openrouter" and router and url == router.rstrip("/") and gated
        if urls.belongs(url, "openrouter.ai") or mirror:
            return [self.key, getenv("OPENROUTER_API_KEY"), getenv("OPENAI_API_KEY")]
        keys = [
            stripped_text(self.model[k]) for k in ("api_key", "api") if _is_text(self.model.get(k))
        ]
        inline = next((key for key in keys if key), ABSENT)
        found = [self.key, inline if configured else ABSENT]
        if urls.belongs(url, "ollama.com"):
            found.append(getenv("OLLAMA_API_KEY"))
        return [*found, *self._env_keys(url)]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_HOST_HEADERS: Mapping[str, Mapping[str, str]] = {
    "openrouter.ai": {
        "HTTP-Referer": "https://hermes-agent.nousresearch.com",
        "X-Title": "Hermes Agent",
        "X-OpenRouter-Categories": "productivity,cli-agent",
    },
    "api.kimi.com": {"User-Agent": "claude-code/0.1.0"},
    "integrate.api.nvidia.com": {"X-BILLING-INVOKE-ORIGIN": "HermesAgent"},
}
_KIMI = ("kimi-coding", "kimi-coding-cn")
_OWN_NAME = "HermesAgent/{version}"
_LIBRARIES = {urls.MESSAGES: ("anthropic", "Anthropic"), urls.CHAT: ("openai", "OpenAI")}


def added_headers(
    inputs: SettingInputs, used: RequestSettings, libraries: Mapping[str, str]
) -> dict[str, str]:
    """Return the headers that Hermes itself adds to the requests of a provider; they are public.

    `libraries` has the versions of the installed packages that send them, which name themselves.
    """
    return {**_library_headers(used, libraries), **_provider_headers(inputs, used)}


def configured_headers(block: Mapping[Any, Any], key: str) -> dict[str, str]:
    """Return the headers in a section of config.yaml."""
    extra = block.get(key)
    pairs = extra.items() if isinstance(extra, dict) else ()
    return {str(k): str(v) for k, v in pairs if v is not None and str(k).isascii()}


def model_headers(inputs: SettingInputs, used: RequestSettings) -> dict[str, str]:
    """Return the headers of `model:`, which Hermes does not send in the protocol of Anthropic."""
    if used.api_mode == urls.MESSAGES or not inputs.release.since(0, 17):
        return {}
    model = section(inputs.config, "model")
    more = configured_headers(model, "extra_headers") if inputs.release.since(0, 18, 1) else {}
    return configured_headers(model, "default_headers") | more


def _library_headers(used: RequestSettings, libraries: Mapping[str, str]) -> dict[str, str]:
    package, name = _LIBRARIES.get(used.api_mode, _LIBRARIES[urls.CHAT])
    version = libraries.get(package)
    return {"User-Agent": f"{name}/Python {version}"} if version else {}


def _provider_headers(inputs: SettingInputs, used: RequestSettings) -> Mapping[str, str]:
    if used.api_mode == urls.MESSAGES:
        kimi = urls.belongs(used.base_url, "api.kimi.com")
        return _HOST_HEADERS["api.kimi.com"] if kimi else {}
    for host, headers in _HOST_HEADERS.items():
        if urls.belongs(used.base_url, host):
            return headers
    named = _OWN_NAME.format(version=".".join(map(str, inputs.release.version)))
    if urls.belongs(used.base_url, "api.routermint.com") or used.provider == "gmi":
        return {"User-Agent": named}
    return {"User-Agent": "hermes-agent/1.0"} if used.provider in _KIMI else {}
