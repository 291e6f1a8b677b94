"""Find the hosts of the model providers in a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.knowledge.data import load_knowledge
from hermes_doctor.settings.platforms import Endpoint, endpoint
from hermes_doctor.settings.variables import Settings, section

_URLS = ("base_url", "url", "api", "api_base")


def find(settings: Settings) -> dict[str, Endpoint]:
    """Return the main and the fallback providers with their addresses."""
    found: dict[str, Endpoint] = {}
    for name, block in _named(settings.config):
        url = _address(settings, name, block)
        end = endpoint(url) if url and "$" not in url else None
        if end:
            found.setdefault(name or end.host, end)
    return found


def _named(config: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for block in (section(config, "model"), section(config, "fallback_model")):
        if block:
            yield str(block.get("provider") or ""), block
    fallbacks = config.get("fallback_providers")
    for one in fallbacks if isinstance(fallbacks, list) else ():
        if isinstance(one, Mapping):
            yield str(one.get("provider") or ""), one


def _address(settings: Settings, name: str, block: Mapping[str, Any]) -> str | None:
    """Return the URL from the provider's block, this block, its variable, or the built-in one."""
    own = section(settings.config, "providers", name)
    for source in (own, block):
        for key in _URLS:
            if isinstance(source.get(key), str) and source[key].strip():
                return str(source[key])
    facts = _known().get(name.lower())
    if facts is None:
        return None
    variable = facts.get("variable", "")
    return settings.value(variable) or str(facts["base_url"])


def _known() -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for name, facts in load_knowledge("providers").items():
        found[name] = facts
        for alias in facts.get("aliases", ()):
            found.setdefault(alias, facts)
    return found
