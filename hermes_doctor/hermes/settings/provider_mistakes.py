"""Find mistakes in the settings of providers, of the model and of the fallback chain.

There are three kinds: a block with the wrong structure, a value of the wrong type, and a reference
to a variable that Hermes does not replace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.core.setting_lines import is_secret_name
from hermes_doctor.hermes.settings import custom_providers, resolved
from hermes_doctor.hermes.settings.credential_pool import state
from hermes_doctor.hermes.settings.document import Path, text
from hermes_doctor.hermes.settings.inputs import SettingInputs, references, section

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


def misshapen_providers(world: SettingInputs) -> Iterator[WrongShape]:
    """Yield custom providers that Hermes does not find because of their structure or place."""
    raw = world.raw
    older, newer = raw.get(custom_providers.CUSTOM_PROVIDERS), raw.get(custom_providers.PROVIDERS)
    nested = section(raw, "model")
    if isinstance(older, dict) and older:
        yield _mapping((custom_providers.CUSTOM_PROVIDERS,), older, newer)
    elif isinstance(older, str):
        yield WrongShape((custom_providers.CUSTOM_PROVIDERS,), "is text, not a list", ())
    if isinstance(newer, list) and newer:
        named = tuple(str(one["name"]) for one in newer if _is_named(one))
        whole = len(named) == len(newer) and older is None
        moved = (custom_providers.CUSTOM_PROVIDERS,) if whole else None
        yield WrongShape((custom_providers.PROVIDERS,), "is a list, not a mapping", named, moved)
    elif isinstance(newer, str) and newer:
        yield WrongShape((custom_providers.PROVIDERS,), "is text, not a mapping", ())
    for key, kind in (
        (custom_providers.PROVIDERS, dict),
        (custom_providers.CUSTOM_PROVIDERS, list),
    ):
        block = nested.get(key)
        if block and isinstance(block, dict | list):
            fits = isinstance(block, kind) and raw.get(key) is None
            yield WrongShape(
                ("model", key), "is inside `model:`", _names(block), (key,) if fits else None
            )


def _mapping(path: Path, block: Mapping[Any, Any], newer: Any) -> WrongShape:
    """Handle the older list written as a mapping, which `providers:` accepts."""
    if all(isinstance(one, dict) for one in block.values()):
        moved = (custom_providers.PROVIDERS,) if newer is None else None
        return WrongShape(path, "is a mapping, not a list", _names(block), moved)
    named = (str(block["name"]),) if _is_named(block) else ()
    has_address = any(block.get(key) for key in custom_providers.URL_KEYS)
    value = [dict(block)] if named and has_address else None
    return WrongShape(path, "is a mapping, not a list", named, None, value)


def _names(block: Any) -> tuple[str, ...]:
    if isinstance(block, dict):
        return tuple(str(name) for name, one in block.items() if isinstance(one, dict))
    return tuple(str(one["name"]) for one in block if _is_named(one))


def _is_named(one: Any) -> bool:
    return isinstance(one, dict) and isinstance(one.get("name"), str) and bool(one["name"])


def misshapen_fallbacks(world: SettingInputs) -> Iterator[WrongShape]:
    """Yield parts of the fallback chain that Hermes silently ignores."""
    raw = world.raw
    for place in (CHAIN, "fallback_model"):
        block = raw.get(place)
        if isinstance(block, str) and block.strip():
            import json

            try:
                found = json.loads(block)
            except (ValueError, RecursionError):
                found = [part.strip() for part in block.split(",")]
            value = _links(world, found)
            yield WrongShape((place,), "is text, not a list of mappings", (), None, value)
        elif isinstance(block, list):
            yield from _chain_entries(world, place, block)
        elif isinstance(block, dict):
            yield from _chain_entry(world, (place,), block)
        elif block:
            yield WrongShape((place,), f"is a {type(block).__name__}, not a list of mappings", ())
    for place in (CHAIN, "fallback_model", "fallback", "fallbacks"):
        block = section(raw, "model").get(place)
        if block:
            value = _links(world, block)
            here = (CHAIN,) if value and not raw.get(CHAIN) else None
            yield WrongShape(("model", place), "is inside `model:`", (), here, value)


def _chain_entries(world: SettingInputs, place: str, block: list[Any]) -> Iterator[WrongShape]:
    for number, one in enumerate(block):
        if isinstance(one, dict):
            yield from _chain_entry(world, (place, number), one)
        elif one:
            value = _links(world, [one])
            what = "is text, not a mapping with `provider` and `model`"
            yield WrongShape((place, number), what, (), None, value[0] if value else None)


def _chain_entry(
    world: SettingInputs, path: Path, block: Mapping[Any, Any]
) -> Iterator[WrongShape]:
    lacking = [key for key in ("provider", "model") if not block.get(key)]
    if not lacking or not any(block.values()):
        return
    value = None
    said = str(block.get("provider") or "")
    if lacking == ["provider"] and block.get("base_url"):
        value = {"provider": "custom", **{k: v for k, v in block.items() if k != "provider"}}
    elif lacking == ["model"] and (split := _split_link(world, said)):
        value = {**block, **split}
    elif (
        lacking == ["model"]
        and (entry := custom_providers.provider_entry(world, said))
        and entry.model()
    ):
        value = {**block, "model": entry.model()}
    yield WrongShape(path, f"has no {' and no '.join(lacking)}", (), None, value)


def _links(world: SettingInputs, block: Any) -> list[dict[str, Any]] | None:
    """Return the entries in the form that Hermes reads; None if one lacks information."""
    made = []
    for one in block if isinstance(block, list) else [block]:
        if isinstance(one, str):
            one = _split_link(world, one)
        if not isinstance(one, dict) or not one.get("provider") or not one.get("model"):
            return None
        made.append(dict(one))
    return made or None


def _split_link(world: SettingInputs, text: str) -> dict[str, Any] | None:
    """Split `provider/model` or `provider:model` if the provider is known."""
    for mark in ("/", ":"):
        name, found, model = text.strip().partition(mark)
        if (
            found
            and model
            and (
                world.release.provider(name.lower()) or custom_providers.provider_entry(world, name)
            )
        ):
            return {"provider": name, "model": model}
    return None


_TEXTS_AT_TOP = ("provider", "base_url")
_TEXTS_OF_MODEL = ("default", "model", "provider", "base_url", "api_key")
_TEXTS_OF_ENTRY = (*custom_providers.URL_KEYS, "api_key", "key_env", "name")
_TEXTS_OF_LINK = ("provider", "model", "base_url", "api_key")
SMALLEST_CONTEXT = 64_000
"""The minimum context length that Hermes requires."""


class WrongType(NamedTuple):
    """A value that must be text but is not."""

    path: Path
    kind: str
    text: str | None
    """The text as written, if quotes would make it valid."""


def wrong_types(world: SettingInputs) -> Iterator[WrongType]:
    """Yield numbers, booleans, lists and mappings where text is required."""
    model = world.raw.get("model")
    if model and not isinstance(model, str | dict):
        yield _wrong_type(world, ("model",), model)
    yield from _wrong_types_in(world, world.raw, (), _TEXTS_AT_TOP)
    yield from _wrong_types_in(world, section(world.raw, "model"), ("model",), _TEXTS_OF_MODEL)
    for entry in custom_providers.provider_entries(world):
        yield from _wrong_types_in(world, entry.block, entry.path, _TEXTS_OF_ENTRY)
    for path, link in resolved.fallback_blocks(world):
        yield from _wrong_types_in(world, link, path, _TEXTS_OF_LINK)


def _wrong_types_in(
    world: SettingInputs, block: Any, path: Path, keys: tuple[str, ...]
) -> Iterator[WrongType]:
    for key in keys:
        value = block.get(key)
        if value is not None and not isinstance(value, str):
            yield _wrong_type(world, (*path, key), value)


def _wrong_type(world: SettingInputs, path: Path, value: Any) -> WrongType:
    kind = {bool: "true or false", int: "a number", float: "a number", dict: "a mapping"}.get(
        type(value), "a list" if isinstance(value, list) else f"a {type(value).__name__}"
    )
    written = None
    place = world.document.places.get(path)
    if place and not isinstance(value, dict | list):
        start, end = world.document.span(place)
        written = world.document.data[start:end].decode()
    return WrongType(path, kind, written)


def meant_context_length(value: Any) -> int | None:
    """Return the number that was meant by `128K`, `1M` or `128,000`."""
    match = re.fullmatch(
        r"\s*(\d{1,9}(?:[.,_ ]\d{3})*|\d+\.\d+)\s*([kKmM]?)(?:i?[bB]|\s*tokens?)?\s*", str(value)
    )
    if not match:
        return None
    number = re.sub(r"[,_ ]", "", match[1])
    factor = {"k": 1000, "m": 1_000_000}.get(match[2].lower(), 1)
    if not match[2] and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", number):
        number = number.replace(".", "")
    found = int(float(number) * factor)
    return found or None


_OTHERS = pattern(r"\$\{env:(\w+)\}|\{\{\s*(?:env\.)?(\w+)\s*\}\}|%(\w+)%|\$\(?(\w+)\)?")
"""Notations of other programs: `${env:NAME}`, `{{ NAME }}`, `%NAME%`, `$NAME`."""
_NAME = pattern(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|URL)")
_MODEL_NAMES = ("default", "model", "name")
_OF_MODEL = ("provider", "base_url", "api_base", "api_key", "api")
_OF_ENTRY = (*custom_providers.URL_KEYS, "api_key", "key_env", "default_model", "model", "name")
_OF_LINK = ("provider", "model", "base_url", "api_key", "key_env", "api_key_env")


class UnresolvedReference(NamedTuple):
    """A reference that is sent literally."""

    path: Path
    name: str
    """The variable's name."""
    is_set: bool
    filled: bool
    """Whether Hermes replaces references in this place."""
    whole: bool
    """Whether the value is only the reference."""
    right: str
    """The value in the notation that Hermes replaces."""
    secret: bool
    """Whether the setting is a key."""


def unresolved_references(world: SettingInputs) -> Iterator[UnresolvedReference]:
    """Yield these references in the model, in custom providers and in the fallback chain."""
    for path, value, filled in _texts(world):
        unresolved_reference = _unresolved_reference(world, path, value, filled)
        if unresolved_reference:
            yield unresolved_reference


def _texts(world: SettingInputs) -> Iterator[tuple[Path, str, bool]]:
    model = world.raw.get("model")
    if isinstance(model, str):
        yield ("model",), model, False
    block = section(world.raw, "model")
    yield from _texts_of_block(block, ("model",), _MODEL_NAMES, False)
    yield from _texts_of_block(block, ("model",), _OF_MODEL, True)
    for entry in custom_providers.provider_entries(world):
        yield from _texts_of_block(entry.block, entry.path, _OF_ENTRY, True)
    for path, link in resolved.fallback_blocks(world):
        yield from _texts_of_block(link, path, _OF_LINK, False)


def _texts_of_block(block: Any, path: Path, keys: tuple[str, ...], filled: bool) -> Iterator[Any]:
    for key in keys:
        if isinstance(block.get(key), str) and block[key].strip():
            yield (*path, key), block[key], filled


def _unresolved_reference(
    world: SettingInputs, path: Path, value: str, filled: bool
) -> UnresolvedReference | None:
    if not any(mark in value for mark in "${%") and not value.strip().isupper():
        return None
    names = [name for name in references(value) if re.fullmatch(r"\w+", name)]
    secret = path[-1] in ("api_key", "api") and "://" not in value
    if names:
        lost = [name for name in names if name not in world.variables]
        if filled and not lost:
            return None
        name = (lost or names)[0]
        whole = value.strip() == f"${{{name}}}"
        return UnresolvedReference(path, name, not lost, filled, whole, value.strip(), secret)
    bare = value.strip()
    other = _OTHERS.fullmatch(bare)
    word = next((group for group in other.groups() if group), "") if other else ""
    if not word and secret and _NAME.fullmatch(bare) and path[-1] != "key_env":
        word = bare
    if not word or path[-1] == "key_env" or not re.match(r"[A-Za-z_]", word):
        return None
    is_set = bool(world.variables.get(word))
    if not is_set and not word.isupper():
        return None  # a model or a key may start with a dollar sign
    return UnresolvedReference(path, word, is_set, filled, True, f"${{{word}}}", secret)


def writable_value(world: SettingInputs, name: str) -> str | None:
    """Return a variable's value if it may be written to config.yaml: set, and not a secret."""
    failure = world.variables.get(name)
    if not failure or is_secret_name(name):
        return None
    plain = state(world.release, text(failure)) == "usable" and "\n" not in failure
    return str(failure).strip() if plain else None
