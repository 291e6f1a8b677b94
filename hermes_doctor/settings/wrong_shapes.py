"""Find blocks of config.yaml with the wrong structure, and the structure that Hermes reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import provider_entries
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import SettingInputs, section

CHAIN = "fallback_providers"


class WrongShape(NamedTuple):
    """A block that Hermes ignores because of its structure or place."""

    path: Path
    what: str
    names: tuple[str, ...]
    """The providers that are lost because of it."""
    moved: Path | None = None
    """The path where it would work unchanged."""
    value: Any = None
    """What to write there if moving is not enough."""


def providers(world: SettingInputs) -> Iterator[WrongShape]:
    """Yield custom providers that Hermes does not find because of their structure or place."""
    raw = world.raw
    older, newer = raw.get(provider_entries.LIST), raw.get(provider_entries.DICT)
    nested = section(raw, "model")
    if isinstance(older, dict) and older:
        yield _mapping((provider_entries.LIST,), older, newer)
    elif isinstance(older, str):
        yield WrongShape((provider_entries.LIST,), "is text, not a list", ())
    if isinstance(newer, list) and newer:
        named = tuple(str(one["name"]) for one in newer if _is_named(one))
        whole = len(named) == len(newer) and older is None
        moved = (provider_entries.LIST,) if whole else None
        yield WrongShape((provider_entries.DICT,), "is a list, not a mapping", named, moved)
    elif isinstance(newer, str) and newer:
        yield WrongShape((provider_entries.DICT,), "is text, not a mapping", ())
    for key, kind in ((provider_entries.DICT, dict), (provider_entries.LIST, list)):
        block = nested.get(key)
        if block and isinstance(block, dict | list):
            fits = isinstance(block, kind) and raw.get(key) is None
            yield WrongShape(
                ("model", key), "stands inside of `model:`", _names(block), (key,) if fits else None
            )


def _mapping(path: Path, block: Mapping[Any, Any], newer: Any) -> WrongShape:
    """Handle the older list written as a mapping, which `providers:` accepts."""
    if all(isinstance(one, dict) for one in block.values()):
        moved = (provider_entries.DICT,) if newer is None else None
        return WrongShape(path, "is a mapping, not a list", _names(block), moved)
    named = (str(block["name"]),) if _is_named(block) else ()
    value = (
        [dict(block)] if named and any(block.get(key) for key in provider_entries.URLS) else None
    )
    return WrongShape(path, "is a mapping, not a list", named, None, value)


def _names(block: Any) -> tuple[str, ...]:
    if isinstance(block, dict):
        return tuple(str(name) for name, one in block.items() if isinstance(one, dict))
    return tuple(str(one["name"]) for one in block if _is_named(one))


def _is_named(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str) and bool(one["name"])


def chain(world: SettingInputs) -> Iterator[WrongShape]:
    """Yield parts of the fallback chain that Hermes silently ignores."""
    raw = world.raw
    for place in (CHAIN, "fallback_model"):
        block = raw.get(place)
        if isinstance(block, str) and block.strip():
            value = _read(world, block)
            yield WrongShape((place,), "is text, not a list of mappings", (), None, value)
        elif isinstance(block, list):
            yield from _entries(world, place, block)
        elif isinstance(block, dict):
            yield from _entry(world, (place,), block)
        elif block:
            yield WrongShape((place,), f"is a {type(block).__name__}, not a list of mappings", ())
    for place in (CHAIN, "fallback_model", "fallback", "fallbacks"):
        block = section(raw, "model").get(place)
        if block:
            value = _links(world, block)
            here = (CHAIN,) if value and not raw.get(CHAIN) else None
            yield WrongShape(("model", place), "stands inside of `model:`", (), here, value)


def _entries(world: SettingInputs, place: str, block: list[Any]) -> Iterator[WrongShape]:
    for number, one in enumerate(block):
        if isinstance(one, dict):
            yield from _entry(world, (place, number), one)
        elif one:
            value = _links(world, [one])
            what = "is text, not a mapping with `provider` and `model`"
            yield WrongShape((place, number), what, (), None, value[0] if value else None)


def _entry(world: SettingInputs, path: Path, block: Mapping[Any, Any]) -> Iterator[WrongShape]:
    lacking = [key for key in ("provider", "model") if not block.get(key)]
    if not lacking or not any(block.values()):
        return
    value = None
    said = str(block.get("provider") or "")
    if lacking == ["provider"] and block.get("base_url"):
        value = {"provider": "custom", **{k: v for k, v in block.items() if k != "provider"}}
    elif lacking == ["model"] and (split := _split(world, said)):
        value = {**block, **split}
    elif (
        lacking == ["model"]
        and (entry := provider_entries.provider_entry(world, said))
        and entry.model()
    ):
        value = {**block, "model": entry.model()}
    yield WrongShape(path, f"names no {' and no '.join(lacking)}", (), None, value)


def _read(world: SettingInputs, text: str) -> list[dict[str, Any]] | None:
    """Parse a chain that is written as text: JSON or names."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = [part.strip() for part in text.split(",")]
    return _links(world, found)


def _links(world: SettingInputs, block: Any) -> list[dict[str, Any]] | None:
    """Return the entries in the form that Hermes reads; None if one lacks information."""
    made = []
    for one in block if isinstance(block, list) else [block]:
        if isinstance(one, str):
            one = _split(world, one)
        if not isinstance(one, dict) or not one.get("provider") or not one.get("model"):
            return None
        made.append(dict(one))
    return made or None


def _split(world: SettingInputs, text: str) -> dict[str, Any] | None:
    """Split `provider/model` or `provider:model` if the provider is known."""
    for mark in ("/", ":"):
        name, found, model = text.strip().partition(mark)
        if (
            found
            and model
            and (
                world.release.provider(name.lower()) or provider_entries.provider_entry(world, name)
            )
        ):
            return {"provider": name, "model": model}
    return None
