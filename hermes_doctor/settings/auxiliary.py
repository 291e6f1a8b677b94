"""Resolve the models for side tasks such as vision, compression and titles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.settings.sourced_text import DEFAULT, Source, Text

_AUTO = Text("auto", Source(DEFAULT, "as the main model"))


class Task(NamedTuple):
    """The provider and model of a side task; `auto` is the main provider or any with a key."""

    name: str
    provider: Text
    model: Text
    base_url: Text
    key: Text
    api_mode: Text


def tasks(inputs: SettingInputs) -> list[Task]:
    """Return every side task that this release knows or that config.yaml names."""
    written = section(inputs.config, "auxiliary")
    known = inputs.release.topic("auxiliary")
    named = [name for name, block in written.items() if isinstance(block, dict)]
    return [_task(inputs, str(name)) for name in dict.fromkeys((*known, *named))]


def _task(inputs: SettingInputs, name: str) -> Task:
    block = {**inputs.release.topic("auxiliary").get(name, {}), **_written(inputs, name)}
    provider, model, url, key, mode = (
        _said(block, k) for k in ("provider", "model", "base_url", "api_key", "api_mode")
    )
    if not key and inputs.release.since(0, 19):
        named = _said(block, "key_env") if block.get("key_env") else _said(block, "api_key_env")
        value = inputs.getenv(named) if named else ABSENT
        key = Text(value, named.source._replace(via=value.source)) if value else ABSENT
    if inputs.release.since(0, 18) and model.lower() == "auto":
        model = ABSENT
    direct = inputs.release.addresses.get(f"auxiliary {provider.lower()}")
    if direct:
        url = url or Text(direct, Source(DEFAULT, str(provider)))
        provider = provider.like("custom")
    if url and key:
        return Task(name, provider.like("custom"), model, url, key, mode)
    if not provider or provider == "auto":
        return Task(name, _AUTO, model, ABSENT, ABSENT, mode)
    return Task(name, provider, model, url, ABSENT if url else key, mode)


def _written(inputs: SettingInputs, name: str) -> Mapping[Any, Any]:
    block = section(inputs.config, "auxiliary").get(name)
    return block if isinstance(block, dict) else {}


def _said(block: Mapping[Any, Any], key: str) -> Text:
    """Convert a value to text as Hermes does: an empty one becomes the word `None`."""
    value = block.get(key, "")
    found = value if isinstance(value, Text) else Text(str(value))
    return found.like(found.strip())
