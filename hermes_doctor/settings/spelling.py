"""Find the provider that an unknown name was meant to be."""

from __future__ import annotations

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import provider_entries
from hermes_doctor.settings.closest_word import unambiguous_match
from hermes_doctor.settings.inputs import SettingInputs

MEANT = {
    "aliyun": "alibaba",
    "amazon-bedrock": "bedrock",
    "azure-openai": "azure-foundry",
    "chatgpt": "openai",
    "gcp": "vertex",
    "nim": "nvidia",
    "open-ai": "openai",
}
"""Names that operators use for providers that Hermes calls differently."""

ADDRESSES = {
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


def meant(world: SettingInputs, word: str) -> str | None:
    """Return the provider that a name stands for; custom providers come first."""
    bare = word.strip().lower().removeprefix("custom:")
    mine = {one.name.lower(): one.word(world) for one in provider_entries.provider_entries(world)}
    name = unambiguous_match(bare, mine)
    if name:
        return mine[name]
    listed = MEANT.get(bare)
    if listed:
        return listed if world.release.provider(listed) else None
    known = [*world.release.registry, "openrouter", "custom", *world.release.aliases]
    if bare in ADDRESSES and bare not in known:  # a provider of its own, not a typo
        return None
    name = unambiguous_match(bare, known)
    return world.release.provider(name) if name else None


def elsewhere(world: SettingInputs, word: str) -> ReleaseRange | None:
    """Return the releases that know a provider which this one does not."""
    for topic in ("registry", "aliases"):
        form = world.release.ever(topic).get(word)
        if form:
            return ReleaseRange(form["from"], form["to"])
    return None


def is_seller(world: SettingInputs, word: str) -> bool:
    """Tell whether resellers have models of a vendor with this name."""
    return word in SELLERS.split() or word in world.release.ever("vendors")
