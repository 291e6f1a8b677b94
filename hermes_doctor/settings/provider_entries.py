"""Read the entries of custom providers as written in config.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import custom_providers
from hermes_doctor.settings.document import Path, dotted_path
from hermes_doctor.settings.inputs import SettingInputs, section

DICT, LIST = "providers", "custom_providers"
URLS = ("base_url", "url", "api")


class ProviderEntry(NamedTuple):
    """An entry of a custom provider, as written."""

    name: str
    path: Path
    block: Mapping[Any, Any]

    def word(self, world: SettingInputs) -> str:
        """Return the `provider` value that selects it and not a built-in one of the same name."""
        plain = custom_providers.slug(self.name)
        if world.release.provider(plain) == plain:
            return custom_providers.PREFIX + plain
        return self.name if self.path[0] == DICT else plain

    def model(self) -> str | None:
        """Return the only model that it names."""
        named = self.block.get("default_model") or self.block.get("model")
        if isinstance(named, str) and named.strip():
            return str(named).strip()
        models = self.models()
        return models[0] if len(models) == 1 else None

    def models(self) -> list[str]:
        """Return the models that it lists."""
        listed = self.block.get("models")
        names = listed if isinstance(listed, dict | list) else ()
        found = (
            one.get("id") or one.get("name") if isinstance(one, dict) else one for one in names
        )
        return [str(one) for one in found if isinstance(one, str)]


def provider_entries(world: SettingInputs) -> list[ProviderEntry]:
    """Return every entry in a place and form that Hermes reads."""
    found = [
        ProviderEntry(str(name), (DICT, name), block)
        for name, block in section(world.raw, DICT).items()
        if isinstance(name, str) and isinstance(block, dict)
    ]
    older = world.raw.get(LIST)
    for number, block in enumerate(older if isinstance(older, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("name"), str):
            found.append(ProviderEntry(str(block["name"]), (LIST, number), block))
    return found


def provider_entry(world: SettingInputs, name: str) -> ProviderEntry | None:
    """Return the entry that Hermes uses for a name."""
    try:
        found = custom_providers.find(world, name)
    except custom_providers.Malformed:
        return None
    if found is None or not found.base_url:
        return None
    return next(
        (one for one in provider_entries(world) if dotted_path(one.path) == found.path), None
    )


def entry_with_address(world: SettingInputs, address: str | None) -> ProviderEntry | None:
    """Return the entry that has this address and can be selected by its name; the first of them."""
    wanted = _comparable(address)
    return next((one for one in selectable_entries(world) if _address(one) == wanted), None)


def selectable_entries(world: SettingInputs) -> list[ProviderEntry]:
    """Return the entries with an address that `provider: NAME` selects."""
    return [
        one
        for one in provider_entries(world)
        if _address(one) and not world.release.provider(custom_providers.slug(one.name))
    ]


def _address(entry: ProviderEntry) -> str:
    return _comparable(next((entry.block[key] for key in URLS if entry.block.get(key)), None))


def _comparable(address: Any) -> str:
    return address.strip().rstrip("/").lower() if isinstance(address, str) else ""


def to_plain_types(value: Any) -> Any:
    """Return a value of config.yaml as plain types, to be written again."""
    if isinstance(value, dict):
        return {str(key): to_plain_types(one) for key, one in value.items()}
    if isinstance(value, list):
        return [to_plain_types(one) for one in value]
    return str(value) if isinstance(value, str) else value
