"""Homes with one mistake each about provider, model, key or fallback, and their correct form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermes_doctor.core.model import Severity

ROUTER, MINE, OPEN = "sk-or-v1-canary-0001", "sk-mine-canary-0002", "sk-open-canary-0003"
ENV = f"OPENROUTER_API_KEY={ROUTER}\nMY_KEY={MINE}\n"
TELEGRAM = "TELEGRAM_BOT_TOKEN=123456:abcdefgh\n"
URL = "https://api.relay.example/v1"
VARIABLES = f"OPENAI_BASE_URL={URL}\nOPENAI_API_KEY={MINE}\n"
OPENROUTER = "https://openrouter.ai/api/v1"
DEEPSEEK = "https://api.deepseek.com/v1"
BARE = f"providers:\n  openkey:\n    base_url: {URL}\n    key_env: MY_KEY\n"
"""Without a comment, because a block with one is not moved."""
RELAY = f"providers:\n  openkey:  # the relay\n    base_url: {URL}\n    key_env: MY_KEY\n"
MODEL = "model:\n  provider: openkey\n  default: gpt-4o-mini\n"
ANY = (0, 13)


@dataclass(frozen=True)
class After:
    """What a request uses after the mistake is fixed."""

    url: str = URL
    model: str = "gpt-4o-mini"
    key: str = MINE


@dataclass(frozen=True)
class Mistake:
    """One home, the finding in it, and the result of its fix."""

    code: str
    config: str
    env: str = ENV
    severity: Severity = Severity.ERROR
    fix: str | None = None
    after: After | None = None
    """What Hermes must resolve after the fix."""
    of_fallback: bool = False
    """Whether `after` is about the first fallback, not the main model."""
    since: tuple[int, ...] = ANY
    before: tuple[int, ...] = (9,)
    store: Mapping[str, Any] = field(default_factory=dict)

    def fits(self, version: tuple[int, ...]) -> bool:
        """Return whether this is a mistake in a release."""
        return self.since <= version < self.before


def _relay(old: str, new: str) -> str:
    assert old in MODEL + RELAY
    return (MODEL + RELAY).replace(old, new)


def _custom(more: str, model: str = "gpt-4o-mini") -> str:
    return f"model:\n  provider: custom\n  default: {model}\n{more}"


WARNING, INFO, CRITICAL = Severity.WARNING, Severity.INFO, Severity.CRITICAL
USE, CONFIGURED, STRIP, CORRECT, REWRITE = (
    "use-own-provider",
    "use-configured-provider",
    "strip-prefix",
    "correct-provider",
    "rewrite-setting",
)
LINK = "fallback_providers:\n  - provider: openkey\n    model: gpt-4o-mini\n"
FIRST = "model:\n  provider: openrouter\n  default: z-ai/glm-5.2\n"

MISTAKES: dict[str, Mistake] = {
    # -- which provider -------------------------------------------------------------------------
    "the old provider is left": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("provider: openkey\n  default: ", "provider: openrouter\n  default: openkey/"),
        fix=USE,
        after=After(),
    ),
    "no provider, only the prefix": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("  provider: openkey\n  default: ", "  default: openkey/"),
        fix=USE,
        after=After(),
    ),
    "auto, and the prefix": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("provider: openkey\n  default: ", "provider: auto\n  default: openkey/"),
        fix=USE,
        after=After(),
    ),
    "the model alone, with the prefix": Mistake(
        "CFG-PROVIDER-LEFT", "model: openkey/gpt-4o-mini\n" + RELAY, fix=USE, after=After()
    ),
    "the provider at the top is left": Mistake(
        "CFG-PROVIDER-LEFT",
        "provider: openrouter\nmodel: openkey/gpt-4o-mini\n" + RELAY,
        fix=USE,
        after=After(),
    ),
    "left in the list of older releases": Mistake(
        "CFG-PROVIDER-LEFT",
        "model: {provider: openrouter, default: open-key/gpt-4o-mini}\n"
        f"custom_providers:\n- name: Open Key\n  base_url: {URL}\n  api_key: ${{MY_KEY}}\n",
        fix=USE,
        after=After(),
    ),
    "left in the chain": Mistake(
        "CFG-PROVIDER-LEFT",
        FIRST + RELAY + LINK.replace("openkey\n    model: ", "openrouter\n    model: openkey/"),
        severity=WARNING,
        fix=USE,
        after=After(),
        of_fallback=True,
    ),
    "a relay set only by variables": Mistake(
        "CFG-PROVIDER-LEFT", "model: {default: vendor/thinker}\n", env=VARIABLES
    ),
    "a relay set only by variables, and a provider": Mistake(
        "CFG-PROVIDER-LEFT", FIRST, env=VARIABLES
    ),
    "a relay set only by a variable, and a key of OpenRouter": Mistake(
        "CFG-PROVIDER-LEFT",
        "model: {default: z-ai/glm-5.2}\n",
        env=ENV + VARIABLES.partition("OPENAI_API_KEY")[0],
        severity=WARNING,
    ),
    "the address of a relay, but OpenRouter": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("provider: openkey", f"provider: openrouter\n  base_url: {URL}/"),
        fix=CONFIGURED,
        after=After(),
    ),
    "the address of a relay in the older list, but OpenRouter": Mistake(
        "CFG-PROVIDER-LEFT",
        f"model: {{provider: openrouter, default: gpt-4o-mini, base_url: '{URL}'}}\n"
        f"custom_providers:\n- name: Open Key\n  base_url: {URL}\n  api_key: ${{MY_KEY}}\n",
        fix=CONFIGURED,
        after=After(),
    ),
    "the address of a relay, and a name as at OpenRouter": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay(
            "provider: openkey\n  default: ",
            f"provider: openrouter\n  base_url: {URL}\n  default: openai/",
        ),
        severity=WARNING,
        fix=CONFIGURED,
        after=After(model="openai/gpt-4o-mini"),
    ),
    "the address of a relay, but another model": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay(
            "provider: openkey\n  default: gpt-4o-mini",
            f"provider: openrouter\n  base_url: {URL}\n  default: openai/gpt-5",
        )
        + "    default_model: gpt-4o-mini\n",
        severity=WARNING,
        fix=CONFIGURED,
        after=After(),
    ),
    "the address of a relay without a provider": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("provider: openkey", f"base_url: {URL}"),
        fix=CONFIGURED,
        after=After(),
        before=(0, 18),
    ),
    "a relay, but OpenRouter and a bare name": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("provider: openkey", "provider: openrouter"),
        fix=CONFIGURED,
        after=After(),
    ),
    "a relay, no provider and a bare name": Mistake(
        "CFG-PROVIDER-LEFT",
        _relay("  provider: openkey\n", ""),
        fix=CONFIGURED,
        after=After(),
    ),
    "the prefix is kept": Mistake(
        "CFG-MODEL-PREFIX",
        _relay("default: ", "default: openkey/"),
        severity=WARNING,
        fix=STRIP,
        after=After(),
    ),
    "the prefix is kept, and the models are listed": Mistake(
        "CFG-MODEL-PREFIX",
        _relay("default: ", "default: openkey/") + "    models: [gpt-4o-mini, gpt-4o]\n",
        fix=STRIP,
        after=After(),
    ),
    "misspelt": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        _relay("provider: openkey", "provider: opnekey"),
        severity=CRITICAL,
        fix=CORRECT,
        after=After(),
    ),
    "a hyphen too many": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        "model: {provider: deep-seek, default: deepseek-chat}\n",
        env=f"DEEPSEEK_API_KEY={OPEN}\n",
        severity=CRITICAL,
        fix=CORRECT,
        after=After(DEEPSEEK, "deepseek-chat", OPEN),
    ),
    "not defined": Mistake(
        "CFG-PROVIDER-UNKNOWN", MODEL.replace("openkey", "nowhere"), severity=CRITICAL
    ),
    "not defined, with a fallback": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        MODEL.replace("openkey", "nowhere")
        + "fallback_providers:\n- {provider: openrouter, model: z-ai/glm-5.2}\n",
        severity=WARNING,
    ),
    "defined without an address": Mistake(
        "CFG-PROVIDER-UNKNOWN", _relay(f"    base_url: {URL}\n", ""), severity=CRITICAL
    ),
    "removed": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        "model: {provider: ai-gateway, default: x}\n",
        severity=CRITICAL,
        since=(0, 15),
    ),
    "groq": Mistake(
        "CFG-PROVIDER-UNKNOWN", "model: {provider: groq, default: x}\n", severity=CRITICAL
    ),
    "openai": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        "model: {provider: openai, default: gpt-4o}\n",
        env=f"OPENAI_API_KEY={OPEN}\n",
        severity=CRITICAL,
        fix=CORRECT,
        after=After("https://api.openai.com/v1", "gpt-4o", OPEN),
    ),
    "switched off": Mistake(
        "CFG-PROVIDER-UNKNOWN",
        MODEL + RELAY + "    enabled: false\n",
        severity=CRITICAL,
        fix=CORRECT,
        after=After(),
        since=(0, 19),
    ),
    "the name of a built-in one": Mistake(
        "CFG-BUILTIN-NAME",
        (MODEL + RELAY).replace("openkey", "deepseek"),
        env=ENV + f"DEEPSEEK_API_KEY={OPEN}\n",
        severity=WARNING,
        fix=CORRECT,
        after=After(),
    ),
    # -- the form of custom providers -----------------------------------------------------------
    "the list as a mapping": Mistake(
        "CFG-PROVIDERS-SHAPE",
        MODEL + f"custom_providers:\n  openkey:\n    base_url: {URL}\n    api_key_env: MY_KEY\n",
        fix=REWRITE,
        after=After(),
    ),
    "one entry instead of a list": Mistake(
        "CFG-PROVIDERS-SHAPE",
        MODEL
        + f"custom_providers:\n  name: openkey\n  base_url: {URL}\n  api_key: '${{MY_KEY}}'\n",
        fix=REWRITE,
        after=After(),
    ),
    "the mapping as a list": Mistake(
        "CFG-PROVIDERS-SHAPE",
        MODEL + f"providers:\n- name: openkey\n  base_url: {URL}\n  key_env: MY_KEY\n",
        fix=REWRITE,
        after=After(),
    ),
    "providers inside of model": Mistake(
        "CFG-PROVIDERS-SHAPE",
        MODEL + "  " + BARE.replace("\n", "\n  ").rstrip() + "\n",
        fix=REWRITE,
        after=After(),
    ),
    "a list that is text": Mistake(
        "CFG-PROVIDERS-SHAPE", MODEL + "custom_providers: openkey\n", severity=INFO
    ),
    # -- the key --------------------------------------------------------------------------------
    "api_key_env": Mistake(
        "CFG-KEY-ENV", _relay("key_env", "api_key_env"), fix=REWRITE, after=After()
    ),
    "api_key_env that nothing uses": Mistake(
        "CFG-KEY-ENV", FIRST + RELAY.replace("key_env", "api_key_env"), severity=INFO, fix=REWRITE
    ),
    "key_env in model": Mistake(
        "CFG-KEY-ENV",
        _custom(f"  base_url: {URL}\n  key_env: MY_KEY\n"),
        fix=REWRITE,
        after=After(),
    ),
    "the key at the top": Mistake(
        "CFG-KEY-ENV",
        f"api_key: {MINE}\n" + _custom(f"  base_url: {URL}\n"),
        env="",
        fix=REWRITE,
        after=After(),
    ),
    "the key itself in key_env": Mistake(
        "CFG-KEY-ENV", _relay("MY_KEY", MINE), env="", fix=REWRITE, after=After()
    ),
    "a reference in key_env": Mistake(
        "CFG-KEY-ENV", _relay("MY_KEY", "${MY_KEY}"), fix=REWRITE, after=After()
    ),
    "no key is named": Mistake(
        "PROVIDER-KEY",
        _relay("    key_env: MY_KEY\n", ""),
        env=f"OPENKEY_API_KEY={OPEN}\n",
        fix="name-key",
        after=After(key=OPEN),
    ),
    "no key is set": Mistake("PROVIDER-KEY", MODEL + RELAY, env=TELEGRAM),
    "no key for a built-in": Mistake(
        "PROVIDER-KEY", "model: {provider: deepseek, default: x}\n", env=TELEGRAM
    ),
    "nothing but a platform": Mistake("PROVIDER-KEY", "{}\n", env=TELEGRAM),
    "a placeholder": Mistake("PROVIDER-KEY", MODEL + RELAY, env="MY_KEY=your_api_key_here\n"),
    **{
        f"a placeholder: {text}": Mistake("PROVIDER-KEY", MODEL + RELAY, env=f"MY_KEY={text}\n")
        for text in ("sk-your-key", "paste-your-key-here", "[your key]", "<your key>")
    },
    "a placeholder that Hermes knows": Mistake(
        "PROVIDER-KEY",
        "model: {provider: deepseek, default: x}\n",
        env="DEEPSEEK_API_KEY=changeme\n",
    ),
    "masked": Mistake("ENV-REDACTED", MODEL + RELAY, env="MY_KEY=sk-mi...0002\n"),
    "masked wholly": Mistake("ENV-REDACTED", MODEL + RELAY, env="MY_KEY=***\n"),
    "a comment after the key": Mistake(
        "CRED-SHAPE",
        "model: {provider: deepseek, default: deepseek-chat}\n",
        env=f"A=1\nDEEPSEEK_API_KEY={OPEN}  # mine\nB=2\n",
        fix="mend-key",
        after=After(DEEPSEEK, "deepseek-chat", OPEN),
    ),
    "Bearer before the key": Mistake(
        "CRED-SHAPE", MODEL + RELAY, env=f"MY_KEY=Bearer {MINE}\n", fix="mend-key", after=After()
    ),
    "a quote that is not closed": Mistake(
        "CRED-SHAPE", MODEL + RELAY, env=f'A=1\nMY_KEY="{MINE}\n', fix="mend-key", after=After()
    ),
    "typographic quotes": Mistake(
        "CRED-SHAPE",
        "model: {provider: deepseek, default: deepseek-chat}\n",
        env=f"DEEPSEEK_API_KEY=“{OPEN}”\n",
        fix="mend-key",
        after=After(DEEPSEEK, "deepseek-chat", OPEN),
    ),
    "Bearer in config.yaml": Mistake(
        "CRED-SHAPE",
        _relay("key_env: MY_KEY", f"api_key: Bearer {MINE}"),
        fix="mend-key",
        after=After(),
    ),
    "a stranger gets the key": Mistake(
        "CRED-STRANGER",
        _relay("    key_env: MY_KEY\n", ""),
        env=ENV + f"OPENKEY_API_KEY={OPEN}\n",
        fix="name-key",
        after=After(key=OPEN),
        before=(0, 15),
    ),
    # -- variables in config.yaml ---------------------------------------------------------------
    "a variable that is not set": Mistake(
        "CFG-UNRESOLVED", _relay("key_env: MY_KEY", "api_key: ${NOWHERE}")
    ),
    "a variable that is not set, for the model": Mistake(
        "CFG-UNRESOLVED", _relay("gpt-4o-mini", "${NOWHERE}")
    ),
    "as a shell writes it": Mistake(
        "CFG-UNRESOLVED",
        _relay("key_env: MY_KEY", "api_key: $MY_KEY"),
        fix=REWRITE,
        after=After(),
    ),
    "as others write it": Mistake(
        "CFG-UNRESOLVED",
        _relay("key_env: MY_KEY", "api_key: ${env:MY_KEY}"),
        fix=REWRITE,
        after=After(),
    ),
    "the name alone": Mistake(
        "CFG-UNRESOLVED",
        _relay("key_env: MY_KEY", "api_key: MY_KEY"),
        fix=REWRITE,
        after=After(),
    ),
    "a variable for the model": Mistake(
        "CFG-UNRESOLVED",
        _relay("gpt-4o-mini", "${WHICH}"),
        env=ENV + "WHICH=gpt-4o-mini\n",
        fix=REWRITE,
        after=After(),
    ),
    "a variable in the chain": Mistake(
        "CFG-UNRESOLVED",
        FIRST + RELAY + LINK + "    api_key: ${MY_KEY}\n",
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
        since=(0, 15),
    ),
    "a variable that nothing uses": Mistake(
        "CFG-UNRESOLVED", FIRST + RELAY.replace("key_env: MY_KEY", "api_key: ${NO}"), severity=INFO
    ),
    # -- the address ----------------------------------------------------------------------------
    "doubled": Mistake(
        "CFG-BASE-URL", _relay(URL, f"{URL}/chat/completions"), fix="mend-address", after=After()
    ),
    "the version twice": Mistake(
        "CFG-BASE-URL", _relay(URL, f"{URL}/v1/"), fix="mend-address", after=After()
    ),
    "no scheme": Mistake(
        "CFG-BASE-URL",
        _relay(URL, URL.removeprefix("https://")),
        fix="mend-address",
        after=After(),
    ),
    "no /v1 at Ollama": Mistake(
        "CFG-BASE-URL",
        _custom("  base_url: http://127.0.0.1:11434\n"),
        env="",
        fix="mend-address",
        after=After("http://127.0.0.1:11434/v1", key="no-key-required"),
    ),
    "no /v1, perhaps": Mistake("CFG-BASE-URL", _relay(URL, URL.removesuffix("/v1")), severity=INFO),
    "custom without an address": Mistake("CFG-BASE-URL", _custom("")),
    "ollama without an address": Mistake("CFG-BASE-URL", "model: {provider: ollama, default: x}\n"),
    "api_base": Mistake(
        "CFG-BASE-URL",
        _custom(f"  api_base: {URL}\n  api_key: ${{MY_KEY}}\n"),
        fix="mend-address",
        after=After(),
        before=(0, 18),
    ),
    "OpenRouter with an address": Mistake(
        "CFG-BASE-URL",
        f"model: {{provider: openrouter, default: gpt-4o-mini, base_url: '{URL}',"
        f" api_key: {MINE}}}\n",
        fix="mend-address",
        after=After(),
    ),
    "an address without a provider": Mistake(
        "CFG-BASE-URL",
        f"model: {{default: gpt-4o-mini, base_url: '{URL}'}}\n",
        before=(0, 18),
    ),
    "CUSTOM_BASE_URL": Mistake(
        "CFG-BASE-URL",
        _custom(f"  base_url: {URL}\n  api_key: {MINE}\n"),
        env="CUSTOM_BASE_URL=http://127.0.0.1:9/v1\n",
        severity=WARNING,
        fix="mend-address",
        after=After(),
    ),
    "an address beside the provider's own": Mistake(
        "CFG-BASE-URL",
        _relay("  default", "  base_url: https://old.example/v1\n  default"),
        severity=WARNING,
        fix="mend-address",
        after=After(),
    ),
    # -- the pool -------------------------------------------------------------------------------
    "a stored key that was refused": Mistake(
        "CRED-POOL-STALE",
        "model: {provider: deepseek, default: x}\n",
        env=f"DEEPSEEK_API_KEY={OPEN}\n",
        severity=WARNING,
        store={
            "credential_pool": {
                "deepseek": [
                    {
                        "id": "a1",
                        "label": "work",
                        "source": "manual",
                        "auth_type": "api_key",
                        "access_token": MINE,
                        "last_error_code": 401,
                    }
                ]
            }
        },
    ),
    "a stored key beside another": Mistake(
        "CRED-POOL-STALE",
        "model: {provider: deepseek, default: x}\n",
        env=f"DEEPSEEK_API_KEY={OPEN}\n",
        severity=INFO,
        store={
            "credential_pool": {
                "deepseek": [
                    {"id": "a1", "label": "work", "source": "manual", "access_token": MINE}
                ]
            }
        },
    ),
    "all stored keys are dead": Mistake(
        "CRED-POOL-STALE",
        "model: {provider: deepseek, default: x}\n",
        env="",
        since=(0, 16),
        store={
            "credential_pool": {
                "deepseek": [
                    {"id": "a1", "source": "manual", "access_token": MINE, "last_status": "dead"}
                ]
            }
        },
    ),
    "a bare name at OpenRouter": Mistake(
        "CFG-MODEL",
        "model: {provider: openrouter, default: gpt-4o-mini}\n",
        fix="set-model",
        after=After(OPENROUTER, "openai/gpt-4o-mini", ROUTER),
    ),
    "a bare name alone": Mistake(
        "CFG-MODEL",
        "model: deepseek-chat\n",
        fix="set-model",
        after=After(OPENROUTER, "deepseek/deepseek-chat", ROUTER),
    ),
    "Anthropic's own name at OpenRouter": Mistake(
        "CFG-MODEL",
        "model: {provider: openrouter, default: claude-sonnet-4-5}\n",
        fix="set-model",
        after=After(OPENROUTER, "anthropic/claude-sonnet-4.5", ROUTER),
    ),
    "an unknown bare name at OpenRouter": Mistake(
        "CFG-MODEL", "model: {provider: openrouter, default: my-model}\n"
    ),
    "a bare name at OpenRouter, and a relay with other models": Mistake(
        "CFG-MODEL",
        _relay("provider: openkey", "provider: openrouter") + "    models: [glm-5, glm-5-air]\n",
        fix="set-model",
        after=After(OPENROUTER, "openai/gpt-4o-mini", ROUTER),
    ),
    "an unknown bare name at OpenRouter in the chain": Mistake(
        "CFG-MODEL",
        MODEL + RELAY + "fallback_providers:\n- {provider: openrouter, model: my-model}\n",
        severity=WARNING,
    ),
    # -- the model ------------------------------------------------------------------------------
    "a number for the model": Mistake(
        "CFG-TYPE",
        _relay("gpt-4o-mini", "4.50"),
        fix=REWRITE,
        after=After(model="4.50"),
    ),
    "a mapping for the model": Mistake("CFG-TYPE", _relay("gpt-4o-mini", "{a: b}")),
    "no for the provider": Mistake("CFG-TYPE", FIRST.replace("openrouter", "no"), severity=WARNING),
    "a number for the provider": Mistake(
        "CFG-TYPE",
        (MODEL + RELAY).replace("  openkey:", "  '302':").replace("openkey", "302"),
        severity=WARNING,
        fix=REWRITE,
        after=After(),
    ),
    "a number for a name": Mistake(
        "CFG-TYPE", _relay("providers:\n", "providers:\n  5:\n    base_url: https://x.example/v1\n")
    ),
    "the model is named in the provider": Mistake(
        "CFG-MODEL",
        _relay("  default: gpt-4o-mini\n", "") + "    default_model: gpt-4o-mini\n",
        fix="set-model",
        after=After(),
    ),
    "the model is named in a variable": Mistake(
        "CFG-MODEL",
        _relay("  default: gpt-4o-mini\n", ""),
        env=ENV + "LLM_MODEL=gpt-4o-mini\n",
        fix="set-model",
        after=After(),
    ),
    "model.name": Mistake(
        "CFG-MODEL",
        _relay("default:", "name:"),
        fix="set-model",
        after=After(),
        before=(0, 18),
    ),
    "no model": Mistake("CFG-MODEL", _relay("  default: gpt-4o-mini\n", "")),
    "retired": Mistake(
        "CFG-MODEL",
        "model: {provider: openrouter, default: x-ai/grok-3}\n",
        severity=WARNING,
        fix="set-model",
        after=After(OPENROUTER, "x-ai/grok-4.3", ROUTER),
    ),
    "128K": Mistake(
        "CFG-CONTEXT-LENGTH",
        _relay("  default", "  context_length: 128K  # tokens\n  default"),
        severity=WARNING,
        fix=REWRITE,
        after=After(),
    ),
    "too little room": Mistake(
        "CFG-CONTEXT-LENGTH", _relay("  default", "  context_length: 32000\n  default")
    ),
    # -- the fallback chain ---------------------------------------------------------------------
    "the chain as JSON": Mistake(
        "CFG-FALLBACK-STR",
        FIRST
        + RELAY
        + """fallback_providers: '[{"provider": "openkey", "model": "gpt-4o-mini"}]'\n""",
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
    ),
    "the chain as text": Mistake(
        "CFG-FALLBACK-STR",
        FIRST + RELAY + "fallback_providers: openkey/gpt-4o-mini\n",
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
    ),
    "a chain of texts": Mistake(
        "CFG-FALLBACK-STR",
        FIRST + RELAY + "fallback_providers:\n  - openkey/gpt-4o-mini  # second\n",
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
    ),
    "the chain inside of model": Mistake(
        "CFG-FALLBACK-STR",
        FIRST + "  " + LINK.replace("\n", "\n  ").rstrip() + "\n" + RELAY,
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
    ),
    "an entry without a provider": Mistake(
        "CFG-FALLBACK-STR",
        FIRST
        + f"fallback_providers:\n- {{model: gpt-4o-mini, base_url: '{URL}', api_key: {MINE}}}\n",
        severity=WARNING,
        fix=REWRITE,
        after=After(),
        of_fallback=True,
    ),
    "an entry without a model": Mistake(
        "CFG-FALLBACK-STR", FIRST + "fallback_providers: [openrouter]\n", severity=WARNING
    ),
    "a fallback that nobody knows": Mistake(
        "CFG-FALLBACK-DEAD",
        FIRST + RELAY + LINK.replace("openkey", "opnekey"),
        severity=WARNING,
        fix=CORRECT,
        after=After(),
        of_fallback=True,
    ),
    "a fallback to the same": Mistake("CFG-FALLBACK-DEAD", MODEL + RELAY + LINK, severity=INFO),
    "a fallback to the same that has no key": Mistake(
        "CFG-FALLBACK-DEAD",
        "model: {provider: openrouter, default: x}\n"
        "fallback_providers:\n- {provider: openrouter, model: y}\n",
        env="",
        severity=WARNING,
    ),
    "no fallback, and one could be": Mistake("CFG-FALLBACK-NONE", FIRST + RELAY, severity=INFO),
    # -- variables ------------------------------------------------------------------------------
    "LLM_MODEL": Mistake(
        "ENV-IGNORED",
        MODEL + RELAY,
        env=ENV + "LLM_MODEL=gpt-3\n",
        severity=INFO,
        fix="drop-variable",
        after=After(),
    ),
    "OPENAI_BASE_URL": Mistake(
        "ENV-IGNORED",
        MODEL + RELAY,
        env="OPENAI_BASE_URL=https://other.example/v1\n" + ENV,
        severity=INFO,
    ),
    "a variable names the provider": Mistake(
        "ENV-IGNORED",
        MODEL + RELAY,
        env=ENV + "HERMES_INFERENCE_PROVIDER=openrouter\n",
        severity=WARNING,
        fix="drop-variable",
        after=After(),
        before=(0, 15),
    ),
}

HEALTHY: dict[str, tuple[str, str]] = {
    "a relay": (MODEL + RELAY, ENV),
    "OpenRouter": (FIRST, ENV),
    "a model alone": ("model: z-ai/glm-5.2\n", ENV),
    "OpenRouter's own model of the name of an entry": (
        FIRST.replace("z-ai/glm-5.2", "openai/gpt-4o")
        + "providers:\n  openai:\n    base_url: https://api.openai.com/v1\n    key_env: MY_KEY\n",
        ENV,
    ),
    **{
        f"{word} for a key nearby": (
            _custom(f"  base_url: {address}\n  api_key: {word}\n", "qwen3"),
            ENV,
        )
        for word, address in (
            ("dummy", "http://192.168.0.7:8000/v1"),
            ("none", "http://localhost:8000/v1"),
            ("test", "http://127.0.0.1:8000/v1"),
            ("secret", "http://10.0.0.2:8000/v1"),
            ("token", "http://box.local:8000/v1"),
        )
    },
    "a relay with prefixes": (
        _relay("default: ", "default: openkey/") + "    models: {openkey/gpt-4o-mini: {}}\n",
        ENV,
    ),
    "a maker that is also an own provider": (
        _relay("default: ", "default: openai/")
        + "  openai:\n    base_url: https://api.openai.com/v1\n    key_env: MY_KEY\n",
        ENV,
    ),
    "a relay called as a maker": (
        (MODEL + RELAY).replace("openkey", "mistralai").replace("gpt", "mistralai/gpt"),
        ENV,
    ),
    "an empty chain": (MODEL + RELAY + "fallback_providers: []\nfallback_model: {}\n", ENV),
    "a bare name of a known vendor in the chain": (
        MODEL + RELAY + "fallback_providers:\n- {provider: openrouter, model: gpt-4o-mini}\n",
        ENV,
    ),
    "a bare name at its own vendor": (
        "model: {provider: deepseek, default: deepseek-chat}\n",
        f"DEEPSEEK_API_KEY={OPEN}\n",
    ),
    "a preset of OpenRouter": (FIRST.replace("z-ai/glm-5.2", '"@preset/mine"'), ENV),
    "a login outside of the home": ("model: {provider: anthropic, default: x}\n", ""),
    "another maker at a relay": (_relay("default: ", "default: anthropic/"), ENV),
    "the older list": (
        f"{MODEL}custom_providers:\n- name: openkey\n  base_url: {URL}\n  api_key_env: MY_KEY\n",
        ENV,
    ),
    "a key in config.yaml": (_relay("key_env: MY_KEY", f"api_key: {MINE}"), ""),
    "a reference": (_relay("key_env: MY_KEY", "api_key: ${MY_KEY}"), ENV),
    "a server of this network": (_custom("  base_url: http://192.168.1.20:8000/v1\n"), ""),
    "a server of this machine": (_custom("  base_url: http://localhost:11434/v1\n"), ""),
    "custom with its key": (_custom(f"  base_url: {URL}\n  api_key: ${{MY_KEY}}\n"), ENV),
    "a chain": (
        MODEL + RELAY + "fallback_providers:\n- {provider: openrouter, model: z-ai/glm-5.2}\n",
        ENV,
    ),
    "a chain to another model of the same": (MODEL + RELAY + LINK.replace("-mini", ""), ENV),
    "a chain to a login": (MODEL + RELAY + LINK.replace("openkey", "nous"), ENV),
    "a built-in": ("model: {provider: deepseek, default: x}\n", f"DEEPSEEK_API_KEY={OPEN}\n"),
    "settings of a built-in": (
        "model: {provider: deepseek, default: x}\nproviders: {deepseek: {timeout: 60}}\n",
        f"DEEPSEEK_API_KEY={OPEN}\n",
    ),
    "an alias": ("model: {provider: kimi, default: x}\n", f"KIMI_API_KEY={OPEN}\n"),
    "room": (_relay("  default", "  context_length: 128000\n  default"), ENV),
    "room in quotes": (_relay("  default", "  context_length: '128_000'\n  default"), ENV),
    "a server of this machine without a model": (
        "model: {provider: custom, base_url: 'http://localhost:8080/v1'}\n",
        "",
    ),
    "a vault": (
        MODEL + RELAY + "secrets: {bitwarden: {enabled: true}}\n",
        TELEGRAM,
    ),
    "nothing at all": ("", ""),
    "nothing but a model": (FIRST, ""),
    "nothing but settings": ("display: {compact: true}\n", ""),
    "a login": ("model: {provider: nous, default: x}\n", ""),
    "the address that Hermes itself writes": (
        FIRST + f"  base_url: {OPENROUTER}\n  api_mode: chat_completions\n",
        ENV,
    ),
    "an address as the provider's own": (_relay("  default", f"  base_url: {URL}\n  default"), ENV),
    "an address of Anthropic's kind": (
        _relay(URL, "https://api.relay.example/anthropic"),
        ENV,
    ),
}
"""Ordinary homes in which nothing may be found at warning or above."""
