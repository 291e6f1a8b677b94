"""Find what a misspelt key, or the name of a provider or a model, was meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.knowledge import parse_release
from hermes_doctor.hermes.knowledge.releases import Release, load_knowledge
from hermes_doctor.hermes.settings import custom_providers
from hermes_doctor.hermes.settings.document import Document, Path
from hermes_doctor.hermes.settings.inputs import SettingInputs

_SHORT, _LONG, _FARTHEST = 4, 8, 3


def closest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that differs by a typo (case, hyphen, a letter or two), or None.

    Words of less than four letters are too short to tell a typo from another word.
    """
    found = _by_distance(word, known)
    return found[0][2] if found else None


def unambiguous_match(word: str, known: Iterable[str]) -> str | None:
    """Return the word itself or the known word it is a typo of; None if two are equally close."""
    known = list(known)
    if word in known:
        return word
    found = _by_distance(word, known)
    if not found or (found[0][0] and found[1:] and found[1][0] == found[0][0]):
        return None
    return found[0][2]


def _by_distance(word: str, known: Iterable[str]) -> list[tuple[int, int, str]]:
    plain = _plain(word)
    most = 0 if len(plain) < _SHORT else 1 if len(plain) < _LONG else 2
    found = []
    for other in known:
        if abs(len(other) - len(word)) > _FARTHEST or other == word:
            continue
        steps = _steps(plain, _plain(other), most)
        if steps is not None:
            found.append((steps, _steps(word, other, 2 * _FARTHEST) or 0, other))
    return sorted(found)


def _plain(word: str) -> str:
    return word.lower().replace("-", "").replace("_", "").replace(" ", "")


def _steps(a: str, b: str, most: int) -> int | None:
    """Count the letters to add, drop, change or swap with a neighbour; None if more than `most`."""
    if a == b:
        return 0
    if abs(len(a) - len(b)) > most or len({*a} ^ {*b}) > 2 * most:
        return None
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, right in enumerate(b, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (left != right))
            if i > 1 and j > 1 and left == b[j - 2] and a[i - 2] == right:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


_PLATFORM, _PROVIDER = "platform", "provider"
_ENTRIES = {"providers": _PROVIDER, "custom_providers": _PROVIDER, "platforms": _PLATFORM}
"""Sections whose entries have arbitrary names but known keys."""


class MisspeltKey(NamedTuple):
    """A key that is probably a typo of another one."""

    path: Path
    meant: str
    line: int


def misspelt_keys(document: Document, release: Release) -> Iterator[MisspeltKey]:
    """Yield the unknown keys of this file that are close to a known one.

    Unknown keys that resemble no known key are not reported, because plugins of Hermes read keys
    that no release lists.
    """
    knowledge = load_knowledge("keys")
    sections = _sections(knowledge["keys"])
    platforms = load_knowledge("enabling")
    elsewhere = {key for section in sections.values() for key in section} | {*knowledge["read"]}
    for path, place in document.keys.items():
        key = path[-1]
        known = _keys_beside(path, sections, platforms)
        if known is None or key in known or not isinstance(key, str) or key.isupper():
            continue
        here = [name for name, forms in known.items() if _is_in_release(forms, release)]
        meant = None if key in elsewhere else closest_word(key, here)
        if meant and (*path[:-1], meant) not in document.keys:
            yield MisspeltKey(path, meant, place.line)


def _keys_beside(
    path: Path, sections: Mapping[str, dict[str, Any]], platforms: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the keys that are allowed next to this one; None where any key is."""
    first = path[0]
    if len(path) == 1:
        return sections[""] | dict(platforms)
    if len(path) == 2 and first in platforms:
        return sections[_PLATFORM] | sections.get(str(first), {})
    if len(path) == 2 and first not in _ENTRIES:
        return sections.get(str(first))
    if len(path) == 3 and first in _ENTRIES:
        more = sections.get(str(path[1]), {}) if path[1] in platforms else {}
        return sections[_ENTRIES[str(first)]] | more
    return None


def _sections(keys: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, forms in keys.items():
        section, _, key = name.rpartition(".")
        found.setdefault(section, {})[key] = forms
    return found


def _is_in_release(forms: Any, release: Release) -> bool:
    """Return whether a key exists in this release."""
    return any(
        "from" not in form
        or parse_release(form["from"]) <= release.version <= parse_release(form["to"])
        for form in forms
    )


OTHER_NAMES = {
    "aliyun": "alibaba",
    "amazon-bedrock": "bedrock",
    "azure-openai": "azure-foundry",
    "chatgpt": "openai",
    "gcp": "vertex",
    "nim": "nvidia",
    "open-ai": "openai",
}
"""Names that operators use for providers that Hermes calls differently."""

OTHER_PROVIDERS = {
    "cerebras": "https://api.cerebras.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openai": "https://api.openai.com/v1",
    "perplexity": "https://api.perplexity.ai",
    "siliconflow": "https://api.siliconflow.cn/v1",
    "together": "https://api.together.xyz/v1",
}
"""Providers that Hermes does not know: they need a custom entry with this address."""

SELLERS = (
    "ai21 amazon baidu bytedance cohere deepcogito liquid microsoft mistralai morph nousresearch "
    "perplexity rekaai sao10k switchpoint thedrummer thudm tngtech"
)
"""Vendors whose models OpenRouter sells, besides those in Hermes' own lists."""


class ReleaseRange(NamedTuple):
    """The first and the last release that has a provider."""

    first: str
    last: str


def meant_provider(world: SettingInputs, word: str) -> str | None:
    """Return the provider that a name stands for; custom providers come first."""
    bare = word.strip().lower().removeprefix("custom:")
    mine = {
        entry.name.lower(): entry.word(world) for entry in custom_providers.provider_entries(world)
    }
    name = unambiguous_match(bare, mine)
    if name:
        return mine[name]
    listed = OTHER_NAMES.get(bare)
    if listed:
        return listed if world.release.provider(listed) else None
    known = [*world.release.registry, "openrouter", "custom", *world.release.aliases]
    if bare in OTHER_PROVIDERS and bare not in known:  # a provider of its own, not a typo
        return None
    name = unambiguous_match(bare, known)
    return world.release.provider(name) if name else None


def releases_with_provider(world: SettingInputs, word: str) -> ReleaseRange | None:
    """Return the releases that know a provider which this one does not."""
    for topic in ("registry", "aliases"):
        form = world.release.ever(topic).get(word)
        if form:
            return ReleaseRange(form["from"], form["to"])
    return None


def is_seller(world: SettingInputs, word: str) -> bool:
    """Tell whether resellers have models of a vendor with this name."""
    return word in SELLERS.split() or word in world.release.ever("vendors")


_VENDOR_BY_WORD = {
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
_SEVERAL_SPELLINGS = ("gemma", "mimo", "trinity", "nemotron", "llama", "step", "qwen")
"""Families whose models have several spellings, so adding the vendor is only a guess."""
_HYPHENS = re.compile(r"(?<=\d)-(?=\d{1,2}(?:\D|$))")


def vendor_of(model: str) -> str | None:
    """Return the vendor that Hermes would put before the name; None if it knows none."""
    name = model.strip().lower()
    first = name.split("-")[0]
    if first in _VENDOR_BY_WORD:
        return _VENDOR_BY_WORD[first]
    return next((vendor for word, vendor in _VENDOR_BY_WORD.items() if name.startswith(word)), None)


def openrouter_name(model: str) -> tuple[str, bool]:
    """Return the likely name at OpenRouter, and whether it is sure; empty if it is not known."""
    vendor = vendor_of(model)
    if vendor is None or "/" in model:
        return "", False
    name = model.strip().lower()
    dated = re.search(r"\d{6}|latest", name)
    if vendor == "anthropic":
        name = _HYPHENS.sub(".", name)  # Anthropic writes 4-5, OpenRouter 4.5
    return f"{vendor}/{name}", not dated and not name.startswith(_SEVERAL_SPELLINGS)
