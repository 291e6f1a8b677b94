"""Knows which models a provider serves, as far as that can be known without asking it."""

from __future__ import annotations

from collections.abc import Sequence

from hermes_doctor.lazy import pattern
from hermes_doctor.provider_switch.target import TargetProvider
from hermes_doctor.settings import custom_providers, provider_entries
from hermes_doctor.settings.resolved import Resolved

_FAMILY = pattern(r"[A-Za-z]+")
"""The first word of a model's name, which most vendors use for all their models."""


def example_model(old: str, aim: TargetProvider, known: Sequence[str]) -> str:
    """A model to suggest: the current one as its own vendor calls it, else one that is known."""
    vendor, slash, bare = old.partition(":")[0].rpartition("/")
    if slash and vendor == aim.name and aim.base_url is None:
        return bare.replace(".", "-") if vendor == "anthropic" else bare
    return next(iter(known), bare)


def strange_to(found: Resolved, aim: TargetProvider, model: str) -> str:
    """A model of the provider, if the asked one is named like another vendor's; else empty."""
    known = known_models(found, aim)
    family = _FAMILY.match(model)
    families = [match[0].lower() for one in known if (match := _FAMILY.match(one))]
    reseller = aim.base_url is not None or any("/" in one for one in known)
    if model in known or reseller or family is None or family[0].lower() in families:
        return ""
    return next(iter(known), "")


def without_prefix(model: str, aim: TargetProvider) -> str:
    """The model without `NAME/`; OpenRouter itself sells models such as `openrouter/auto`."""
    bare = model.removeprefix(f"{aim.name}/")
    return model if aim.name == "openrouter" and "/" not in bare else bare


def is_known(found: Resolved, aim: TargetProvider, model: str) -> bool:
    """Whether the model is the provider's own, known to be served, or already used with it."""
    named = aim.model and without_prefix(aim.model, aim)
    same = found.main.requested.value == aim.name
    return same or model == named or model in known_models(found, aim)


def known_models(found: Resolved, aim: TargetProvider) -> list[str]:
    """Models that the provider serves: as its entry lists, as a fallback uses, as Hermes knows."""
    world = found.world
    entries = provider_entries.provider_entries(world)
    known = [
        model
        for one in entries
        if aim.base_url is not None and custom_providers.slug(one.name) == aim.name
        for model in one.models()
    ]
    chain = [one for one in found.fallback if one.requested.value == aim.name]
    known += [one.model.value for one in chain if one.model.value]
    if aim.base_url is None:
        topics = world.release.topic("models"), world.release.ever("models")
        known += [str(topics[0][aim.name])] if aim.name in topics[0] else []
        known += [str(topics[1][aim.name]["is"])] if aim.name in topics[1] else []
    return [*dict.fromkeys(without_prefix(one, aim) for one in known)]
