"""Who makes a model, judged by the first word of its name.

OpenRouter calls every model `vendor/model`. Hermes adds a missing vendor only to the models of
fallbacks; the main model is sent as it is written.
"""

from __future__ import annotations

import re

_VENDORS = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "gemini": "google",
    "gemma": "google",
    "deepseek": "deepseek",
    "glm": "z-ai",
    "kimi": "moonshotai",
    "minimax": "minimax",
    "grok": "x-ai",
    "qwen": "qwen",
    "mimo": "xiaomi",
    "trinity": "arcee-ai",
    "nemotron": "nvidia",
    "llama": "meta-llama",
    "step": "stepfun",
}
"""The same table as in Hermes; `tests/real/test_provider_knowledge.py` compares them."""
_RENAMED = ("gemma", "mimo", "trinity", "nemotron", "llama", "step", "qwen")
"""Families whose models have several spellings, so adding the vendor is only a guess."""
_HYPHENS = re.compile(r"(?<=\d)-(?=\d{1,2}(?:\D|$))")


def vendor_of(model: str) -> str | None:
    """Return the vendor that Hermes would put before the name; None if it knows none."""
    name = model.strip().lower()
    first = name.split("-")[0]
    if first in _VENDORS:
        return _VENDORS[first]
    return next((vendor for word, vendor in _VENDORS.items() if name.startswith(word)), None)


def openrouter_name(model: str) -> tuple[str, bool]:
    """Return the likely name at OpenRouter, and whether it is sure; empty if it is not known."""
    vendor = vendor_of(model)
    if vendor is None or "/" in model:
        return "", False
    name = model.strip().lower()
    dated = re.search(r"\d{6}|latest", name)
    if vendor == "anthropic":
        name = _HYPHENS.sub(".", name)  # Anthropic writes 4-5, OpenRouter 4.5
    return f"{vendor}/{name}", not dated and not name.startswith(_RENAMED)
