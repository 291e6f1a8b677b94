"""Determine the headers that Hermes adds to a request, besides the key.

Hermes 0.13.0 to 0.19.0 add the same ones for a provider. Later ones in this list win, as in Hermes:
those of the provider, those of `model:` and those of the provider's entry in config.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_doctor.settings import urls
from hermes_doctor.settings.inputs import SettingInputs, section
from hermes_doctor.settings.outcome import RequestSettings

_OF_HOST: Mapping[str, Mapping[str, str]] = {
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
    return {**_of_library(used, libraries), **_of_provider(inputs, used)}


def configured(block: Mapping[Any, Any], key: str) -> dict[str, str]:
    """Return the headers in a section of config.yaml."""
    extra = block.get(key)
    pairs = extra.items() if isinstance(extra, dict) else ()
    return {str(k): str(v) for k, v in pairs if v is not None and str(k).isascii()}


def of_model(inputs: SettingInputs, used: RequestSettings) -> dict[str, str]:
    """Return the headers of `model:`, which Hermes does not send in the protocol of Anthropic."""
    if used.api_mode == urls.MESSAGES or not inputs.release.since(0, 17):
        return {}
    model = section(inputs.config, "model")
    more = configured(model, "extra_headers") if inputs.release.since(0, 18, 1) else {}
    return configured(model, "default_headers") | more


def _of_library(used: RequestSettings, libraries: Mapping[str, str]) -> dict[str, str]:
    package, name = _LIBRARIES.get(used.api_mode, _LIBRARIES[urls.CHAT])
    version = libraries.get(package)
    return {"User-Agent": f"{name}/Python {version}"} if version else {}


def _of_provider(inputs: SettingInputs, used: RequestSettings) -> Mapping[str, str]:
    if used.api_mode == urls.MESSAGES:
        kimi = urls.belongs(used.base_url, "api.kimi.com")
        return _OF_HOST["api.kimi.com"] if kimi else {}
    for host, headers in _OF_HOST.items():
        if urls.belongs(used.base_url, host):
            return headers
    named = _OWN_NAME.format(version=".".join(map(str, inputs.release.version)))
    if urls.belongs(used.base_url, "api.routermint.com") or used.provider == "gmi":
        return {"User-Agent": named}
    return {"User-Agent": "hermes-agent/1.0"} if used.provider in _KIMI else {}
