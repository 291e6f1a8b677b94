"""Find provider and model settings that have the wrong type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import fallback, provider_entries
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import SettingInputs, section

_TOP = ("provider", "base_url")
_MODEL = ("default", "model", "provider", "base_url", "api_key")
_ENTRY = (*provider_entries.URLS, "api_key", "key_env", "name")
_LINK = ("provider", "model", "base_url", "api_key")
SMALLEST = 64_000
"""The minimum context length that Hermes requires."""


class WrongType(NamedTuple):
    """A value that must be text but is not."""

    path: Path
    kind: str
    text: str | None
    """The text as written, if quotes would make it valid."""


def odd(world: SettingInputs) -> Iterator[WrongType]:
    """Yield numbers, booleans, lists and mappings where text is required."""
    model = world.raw.get("model")
    if model and not isinstance(model, str | dict):
        yield _odd(world, ("model",), model)
    yield from _of(world, world.raw, (), _TOP)
    yield from _of(world, section(world.raw, "model"), ("model",), _MODEL)
    for entry in provider_entries.provider_entries(world):
        yield from _of(world, entry.block, entry.path, _ENTRY)
    for path, link in fallback.entries(world):
        yield from _of(world, link, path, _LINK)


def _of(world: SettingInputs, block: Any, path: Path, keys: tuple[str, ...]) -> Iterator[WrongType]:
    for key in keys:
        value = block.get(key)
        if value is not None and not isinstance(value, str):
            yield _odd(world, (*path, key), value)


def _odd(world: SettingInputs, path: Path, value: Any) -> WrongType:
    kind = {bool: "a yes or no", int: "a number", float: "a number", dict: "a mapping"}.get(
        type(value), "a list" if isinstance(value, list) else f"a {type(value).__name__}"
    )
    written = None
    place = world.document.places.get(path)
    if place and not isinstance(value, dict | list):
        start, end = world.document.span(place)
        written = world.document.data[start:end].decode()
    return WrongType(path, kind, written)


def whole(value: Any) -> int | None:
    """Return a length as Hermes converts it; None if it cannot."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def length(value: Any) -> int | None:
    """Return the number that was meant by `128K`, `1M` or `128,000`."""
    import re

    said = re.fullmatch(
        r"\s*(\d{1,9}(?:[.,_ ]\d{3})*|\d+\.\d+)\s*([kKmM]?)(?:i?[bB]|\s*tokens?)?\s*", str(value)
    )
    if not said:
        return None
    number = re.sub(r"[,_ ]", "", said[1])
    factor = {"k": 1000, "m": 1_000_000}.get(said[2].lower(), 1)
    if not said[2] and re.fullmatch(r"\d{1,3}(?:\.\d{3})+", number):
        number = number.replace(".", "")
    found = int(float(number) * factor)
    return found or None
