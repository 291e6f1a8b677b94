"""Homes with the mistakes that operators are known to make; here no field may differ."""

from __future__ import annotations

from tests.helpers.real.made_homes import Made

KEY = "OPENROUTER_API_KEY=sk-router-1234\nOPENKEY_API_KEY=sk-open-5678\nMY_KEY=sk-mine-9\n"
RELAY = "providers:\n  openkey:\n    base_url: https://api.relay.example/v1\n"


def _model(text: str, more: str = "", env: str = KEY) -> Made:
    return Made(f"model: {{{text}}}\n{more}", env, None)


KNOWN: dict[str, Made] = {
    "the old provider stays": _model(
        "provider: openrouter, default: openkey/gpt-4o-mini", RELAY + "    key_env: MY_KEY\n"
    ),
    "the prefix stays": _model(
        "provider: openkey, default: openkey/gpt-4o-mini", RELAY + "    key_env: MY_KEY\n"
    ),
    "api_key_env": _model(
        "provider: openkey, default: x", RELAY + "    api_key_env: OPENKEY_API_KEY\n"
    ),
    "a variable that is not set": _model(
        "provider: openkey, default: x", RELAY + "    api_key: ${NOWHERE}\n"
    ),
    "a shell variable": _model("provider: openkey, default: x", RELAY + "    api_key: $MY_KEY\n"),
    "key_env in model": _model(
        "provider: custom, base_url: 'https://relay.example/v1', key_env: MY_KEY, default: x"
    ),
    "not defined": _model("provider: openkey, default: x"),
    "openai": _model("provider: openai, default: gpt-4o"),
    "not defined, with a fallback": _model(
        "provider: openkey, default: x",
        "fallback_providers:\n- {provider: openrouter, model: y}\n",
    ),
    "base_url of OpenRouter": _model(
        "provider: openrouter, base_url: 'https://relay.example/v1', api_key: sk-1234, default: x"
    ),
    "base_url without a provider": _model("base_url: 'https://relay.example/v1', default: x"),
    "custom without an address": _model("provider: custom, default: x"),
    "ollama without an address": _model("provider: ollama, default: x"),
    "no key": _model("provider: deepseek, default: x", env=""),
    "no key for OpenRouter": _model("provider: openrouter, default: x", env=""),
    "a placeholder": _model("provider: deepseek, default: x", env="DEEPSEEK_API_KEY=changeme\n"),
    "a comment after the key": _model(
        "provider: deepseek, default: x", env="DEEPSEEK_API_KEY=sk-12345  # mine\n"
    ),
    "an empty line erases the variable": Made(
        "model: {provider: deepseek, default: x}\n",
        "DEEPSEEK_API_KEY=\n",
        None,
        {"DEEPSEEK_API_KEY": "sk-process-1"},
    ),
    "a named built-in": _model(
        "provider: deepseek, default: x",
        "providers: {deepseek: {base_url: 'https://relay.example/v1', api_key: sk-9999}}\n",
    ),
    "fallback of strings": _model(
        "provider: nowhere, default: x", "fallback_providers: [openrouter]\n"
    ),
    "fallback in model": _model(
        "provider: nowhere, default: x, fallback_providers: [{provider: openrouter, model: y}]"
    ),
    "a manual entry beats .env": Made(
        "model: {provider: deepseek, default: x}\n",
        "DEEPSEEK_API_KEY=sk-new-key\n",
        '{"version": 1, "credential_pool": {"deepseek": [{"id": "abcdef", "label": "old", '
        '"auth_type": "api_key", "priority": 0, "source": "manual", "access_token": "sk-old"}]}}',
    ),
    "broken": Made("model:\n\tdefault: x\n", KEY, None),
    "a list": Made("- model\n", KEY, None),
    "no files": Made(None, None, None),
    "a number for the model": _model("provider: openrouter, default: 4.5"),
    "no for the provider": _model("provider: no, default: x"),
    "at the top": Made("provider: deepseek\nmodel: x\nDEEPSEEK_API_KEY: sk-top-1\n", "", None),
    "model.name": _model("provider: openrouter, name: x"),
    "model.api_base": _model("provider: custom, api_base: 'https://relay.example/v1', default: x"),
    "CUSTOM_BASE_URL": _model(
        "provider: custom, base_url: 'https://relay.example/v1', default: x",
        env="CUSTOM_BASE_URL=http://127.0.0.1:9/v1\n",
    ),
    "switched off": _model(
        "provider: openkey, default: x", RELAY + "    key_env: MY_KEY\n    enabled: false\n"
    ),
    "telegram at the top": Made(
        "telegram: {token: '1:a', allowed_users: [u-1]}\n", "TELEGRAM_BOT_TOKEN=2:bcdefgh\n", None
    ),
    "platforms as a list": Made("platforms: [telegram]\n", "TELEGRAM_BOT_TOKEN=2:bcdefgh\n", None),
    "a reference as a token": Made(
        "platforms: {telegram: {enabled: true, token: '${TG}'}}\n", "TG=2:b\n", None
    ),
    "a token that is too short": Made("{}\n", "TELEGRAM_BOT_TOKEN=2:b\n", None),
    "all are let in": Made(
        "{}\n", "TELEGRAM_BOT_TOKEN=2:bcdefgh\nGATEWAY_ALLOW_ALL_USERS=true\n", None
    ),
    "a list closes it again": Made(
        "{}\n",
        "TELEGRAM_BOT_TOKEN=2:bcdefgh\nGATEWAY_ALLOW_ALL_USERS=true\nGATEWAY_ALLOWED_USERS=u-1\n",
        None,
    ),
}
