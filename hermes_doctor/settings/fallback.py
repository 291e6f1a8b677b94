"""Resolve the fallback chain, which Hermes tries when the main provider fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import request_route
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import ABSENT, SettingInputs
from hermes_doctor.settings.outcome import RequestSettings, Unresolved
from hermes_doctor.settings.sourced_text import Text, stripped_text, text

_PLACES = ("fallback_providers", "fallback_model")


class FallbackEntry(NamedTuple):
    """One entry of the fallback chain, in which Hermes does not expand `${NAME}`."""

    path: str
    provider: Text
    model: Text
    base_url: Text
    key: Text
    wrong_type: bool = False
    """Whether its provider is not text."""

    def resolve(self, inputs: SettingInputs) -> RequestSettings:
        """Return what a request of this entry would use."""
        if self.wrong_type and not inputs.release.since(0, 15):
            raise Unresolved("malformed", f"the provider of {self.path} is not text")
        asked = self.provider or request_route.requested_provider(inputs, here=False)[0]
        return request_route.resolve(inputs, asked, self.base_url, self.key)


def chain(inputs: SettingInputs) -> list[FallbackEntry]:
    """Return the fallback entries that Hermes accepts; it silently ignores the rest."""
    found: list[FallbackEntry] = []
    seen: set[tuple[str, str, str]] = set()
    for path, block in _entries(inputs):
        link = _link(inputs, path, block)
        if not link.provider or not link.model:
            continue
        same = (link.provider.lower(), link.model.lower(), link.base_url.lower())
        if inputs.release.since(0, 15) and same in seen:
            continue
        seen.add(same)
        found.append(link)
    return found


def _entries(inputs: SettingInputs) -> Iterator[tuple[str, Mapping[Any, Any]]]:
    for place in _PLACES:
        raw = inputs.raw.get(place)
        blocks = raw if isinstance(raw, list) else [raw]
        many = isinstance(raw, list)
        for number, block in enumerate(blocks):
            if isinstance(block, dict):
                yield (f"{place}[{number}]" if many else place), block
        if raw and not inputs.release.since(0, 15):
            return  # older releases read the second place only if the first is empty


def entries(inputs: SettingInputs) -> Iterator[tuple[Path, Mapping[Any, Any]]]:
    """Yield the entries with their paths in config.yaml."""
    for place in _PLACES:
        raw = inputs.raw.get(place)
        if isinstance(raw, dict):
            yield (place,), raw
        for number, block in enumerate(raw if isinstance(raw, list) else ()):
            if isinstance(block, dict):
                yield (place, number), block


def _link(inputs: SettingInputs, path: str, block: Mapping[Any, Any]) -> FallbackEntry:
    url = stripped_text(block.get("base_url")) if isinstance(block.get("base_url"), str) else ABSENT
    key = text(block.get("api_key"))
    key = key.like(key.strip())
    if not key and inputs.release.since(0, 15):
        named = stripped_text(block.get("key_env") or block.get("api_key_env"))
        value = inputs.getenv(named) if named else ABSENT
        key = Text(value, named.source._replace(via=value.source)) if value else ABSENT
    provider = block.get("provider")
    return FallbackEntry(
        path=path,
        provider=stripped_text(provider),
        model=stripped_text(block.get("model")),
        base_url=_bare(url),
        key=key,
        wrong_type=bool(provider) and not isinstance(provider, str),
    )


def _bare(url: Text) -> Text:
    return url.like(url.rstrip("/"))


def tried_links(inputs: SettingInputs) -> list[FallbackEntry]:
    """Return the entries that a gateway tries when the main provider has no credentials.

    Older releases also try entries without a provider or a model.
    """
    if inputs.release.since(0, 15):
        return chain(inputs)
    return [_link(inputs, path, block) for path, block in _entries(inputs)]
