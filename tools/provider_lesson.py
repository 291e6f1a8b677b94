"""Runs under a release's own interpreter: what this release knows about model providers.

Imports nothing of this project: the release is alone with itself. It prints one document:

    registry      the built-in providers: kind, address, variables
    order         their names in the order in which they are tried
    aliases       other names, and the provider that each leads to
    names         the variables that Hermes knows, at which it splits a line of .env in two
    placeholders  values that it does not take for a key
    api_modes     the words that `api_mode` takes
    auxiliary     the tasks that can have a model of their own, and what each has by default
    models        the model that a provider has when none is set
    addresses     the few addresses that belong to no entry of the registry
    opencode      for each OpenCode provider, the beginnings of model names and the mode of each
    azure         the beginnings of model names that Azure serves in the Responses API only
    vendors       what stands before the slash in names of models that resellers sell
    retired       models that the release itself says are no longer served, by provider: what to
                  use instead, or nothing
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
    """Ask, and print one document."""
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
    """Every word in the code of the resolver that it takes for a provider of another name."""
    from providers import list_providers  # type: ignore[import-not-found]

    words = {*_words(auth.resolve_provider.__code__)}
    words |= {alias for one in list_providers() for alias in one.aliases}
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
    """The mode by how a model's name begins; the empty beginning is all others."""
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
    """The makers in the names of models of OpenRouter and of Nous, and those Hermes puts there."""
    from hermes_cli import model_normalize

    sold = [name for name, *_ in models.OPENROUTER_MODELS] + models._PROVIDER_MODELS["nous"]
    makers = {name.partition("/")[0].lower() for name in sold if "/" in name}
    return sorted(makers | {*model_normalize._VENDOR_PREFIXES.values()})


def _retired() -> dict[str, str]:
    """xAI's list with its replacements; of Google's, what is hidden because it answers 404."""
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
    """What may stand before `anthropic.claude` in the name of a model, the empty word included."""
    from agent.bedrock_adapter import is_anthropic_bedrock_model  # type: ignore[import-not-found]

    regions = {word for word in _words(is_anthropic_bedrock_model.__code__) if word[-1:] == "."}
    return [
        r for r in ("", *sorted(regions)) if is_anthropic_bedrock_model(f"{r}anthropic.claude-zz")
    ]


def _words(code: CodeType) -> Iterator[str]:
    """Every text in a function's own constants."""
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
