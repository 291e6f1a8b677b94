"""Report from inside a release what it knows about model providers.

Runs under the release's own interpreter and imports nothing from this project. It prints one
document:

    registry      the built-in providers: kind, address, variables
    order         their names in the order in which they are tried
    aliases       other names, and the provider that each leads to
    names         the variables that Hermes knows, before which it splits joined lines of .env
    placeholders  values that it does not accept as a key
    api_modes     the values that `api_mode` accepts
    auxiliary     the tasks that can have a model of their own, and the default of each
    models        the default model of a provider
    addresses     the few addresses that are not in the registry
    opencode      for each OpenCode provider, the prefixes of model names and the mode of each
    azure         the prefixes of model names that Azure serves in the Responses API only
    vendors       the part before the slash in names of models that resellers offer
    retired       models that the release lists as no longer served, by provider: the replacement,
                  or nothing
    bedrock       the regions before `anthropic.claude` in names of models that Bedrock serves in
                  Anthropic's own API
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

SETTINGS = ("provider", "model", "base_url", "api_key", "api_mode")


def main() -> None:
    (Path(os.environ["HERMES_HOME"]) / "config.yaml").write_text("{}\n")
    from agent import auxiliary_client  # type: ignore[import-not-found]
    from hermes_cli import auth, config, models, runtime_provider  # type: ignore[import-not-found]
    from hermes_constants import OPENROUTER_BASE_URL  # type: ignore[import-not-found]

    registry = {
        name: {
            "kind": one.auth_type,
            "base_url": one.inference_base_url,
            "keys": list(one.api_key_env_vars),
            **({"url": one.base_url_env_var} if one.base_url_env_var else {}),
        }
        for name, one in auth.PROVIDER_REGISTRY.items()
    }
    print(
        json.dumps(
            {
                "registry": registry,
                "order": [" ".join(registry)],
                "aliases": _aliases(auth, registry),
                "names": sorted({*config.OPTIONAL_ENV_VARS, *config._EXTRA_ENV_KEYS}),
                "placeholders": sorted(auth._PLACEHOLDER_SECRET_VALUES),
                "api_modes": sorted(runtime_provider._VALID_API_MODES),
                "auxiliary": {
                    task: {key: block[key] for key in SETTINGS if block.get(key)}
                    for task, block in config.DEFAULT_CONFIG["auxiliary"].items()
                    if isinstance(block, dict)
                },
                "addresses": {
                    "openrouter": OPENROUTER_BASE_URL,
                    "kimi-code": auth.KIMI_CODE_BASE_URL,
                    **{
                        f"auxiliary {name}": url
                        for name, url in getattr(
                            auxiliary_client, "_AUX_DIRECT_API_BASE_URLS", {}
                        ).items()
                    },
                },
                "models": {
                    name: models.get_default_model_for_provider(name)
                    for name in ("openrouter", "custom", "moa", "vertex", *registry)
                    if models.get_default_model_for_provider(name)
                },
                "opencode": _opencode(models),
                "azure": sorted(models._AZURE_FOUNDRY_RESPONSES_PREFIXES),
                "vendors": _vendors(models),
                "retired": _retired(),
                "bedrock": _bedrock(),
                "config_version": [str(config.DEFAULT_CONFIG["_config_version"])],
            }
        )
    )


def _aliases(auth: Any, registry: dict[str, Any]) -> dict[str, str]:
    """Return every word in the resolver's code that it accepts as another name of a provider."""
    from providers import list_providers  # type: ignore[import-not-found]

    words = {*_words(auth.resolve_provider.__code__)}
    words |= {alias for provider in list_providers() for alias in provider.aliases}
    found = {}
    for word in sorted(words - {*registry, "auto"}):
        try:
            meant = auth.resolve_provider(word)
        except auth.AuthError:
            continue
        if meant != word:
            found[word] = meant
    return found


def _opencode(models: Any) -> dict[str, dict[str, str]]:
    """Return the mode by prefix of the model's name; the empty prefix means all others."""
    ask = models.opencode_model_api_mode
    begins = sorted({word for word in _words(ask.__code__) if word.endswith(("-", "x", "n"))})
    return {
        provider: {
            begin: ask(provider, f"{begin}zz")
            for begin in ("", *begins)
            if not begin or ask(provider, f"{begin}zz") != ask(provider, "zz")
        }
        for provider in ("opencode-zen", "opencode-go")
    }


def _vendors(models: Any) -> list[str]:
    """Return the vendors in model names of OpenRouter and Nous, and those that Hermes adds."""
    from hermes_cli import model_normalize

    sold = [name for name, *_ in models.OPENROUTER_MODELS] + models._PROVIDER_MODELS["nous"]
    makers = {name.partition("/")[0].lower() for name in sold if "/" in name}
    return sorted(makers | {*model_normalize._VENDOR_PREFIXES.values()})


def _retired() -> dict[str, str]:
    """Return xAI's models with their replacements, and Google's that are hidden for HTTP 404."""
    from agent import models_dev

    found = {
        f"gemini {name}": ""
        for name in getattr(models_dev, "_GOOGLE_HIDDEN_MODELS", ())
        if name.startswith("gemini-")
    }
    try:
        from hermes_cli.xai_retirement import _RETIRED_MODELS  # type: ignore[import-not-found]
    except ImportError:
        return found
    return found | {f"xai {name}": one["replacement"] for name, one in _RETIRED_MODELS.items()}


def _bedrock() -> list[str]:
    """Return the prefixes, the empty one too, before `anthropic.claude` in a model's name."""
    from agent.bedrock_adapter import is_anthropic_bedrock_model  # type: ignore[import-not-found]

    regions = {word for word in _words(is_anthropic_bedrock_model.__code__) if word[-1:] == "."}
    return [
        r for r in ("", *sorted(regions)) if is_anthropic_bedrock_model(f"{r}anthropic.claude-zz")
    ]


def _words(code: CodeType) -> Iterator[str]:
    """Yield every text without spaces in a function's constants."""
    left: list[Any] = list(code.co_consts)
    while left:
        one = left.pop()
        if isinstance(one, str) and " " not in one:
            yield one
        elif isinstance(one, tuple | frozenset):
            left += one
        elif isinstance(one, CodeType):
            left += one.co_consts


if __name__ == "__main__":
    main()
