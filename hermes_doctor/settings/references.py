"""Find references to variables in config.yaml that Hermes does not replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.settings import fallback, provider_entries
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import SettingInputs, references, section
from hermes_doctor.settings.key_state import state
from hermes_doctor.settings.sourced_text import text

_OTHERS = pattern(r"\$\{env:(\w+)\}|\{\{\s*(?:env\.)?(\w+)\s*\}\}|%(\w+)%|\$\(?(\w+)\)?")
"""Notations of other programs: `${env:NAME}`, `{{ NAME }}`, `%NAME%`, `$NAME`."""
_NAME = pattern(r"[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|SECRET|URL)")
_MODEL = ("default", "model", "name")
_SETTINGS = ("provider", "base_url", "api_base", "api_key", "api")
_ENTRY = (*provider_entries.URLS, "api_key", "key_env", "default_model", "model", "name")
_LINK = ("provider", "model", "base_url", "api_key", "key_env", "api_key_env")


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


def unfilled(world: SettingInputs) -> Iterator[UnresolvedReference]:
    """Yield these references in the model, in custom providers and in the fallback chain."""
    for path, value, filled in _texts(world):
        found = _unfilled(world, path, value, filled)
        if found:
            yield found


def _texts(world: SettingInputs) -> Iterator[tuple[Path, str, bool]]:
    model = world.raw.get("model")
    if isinstance(model, str):
        yield ("model",), model, False
    block = section(world.raw, "model")
    yield from _of(block, ("model",), _MODEL, False)
    yield from _of(block, ("model",), _SETTINGS, True)
    for entry in provider_entries.provider_entries(world):
        yield from _of(entry.block, entry.path, _ENTRY, True)
    for path, link in fallback.entries(world):
        yield from _of(link, path, _LINK, False)


def _of(block: Any, path: Path, keys: tuple[str, ...], filled: bool) -> Iterator[Any]:
    for key in keys:
        if isinstance(block.get(key), str) and block[key].strip():
            yield (*path, key), block[key], filled


def _unfilled(
    world: SettingInputs, path: Path, value: str, filled: bool
) -> UnresolvedReference | None:
    if not any(mark in value for mark in "${%") and not value.strip().isupper():
        return None
    names = [name for name in references(value) if re.fullmatch(r"\w+", name)]
    secret = path[-1] in ("api_key", "api") and not _is_address(value)
    if names:
        lost = [name for name in names if name not in world.variables]
        if filled and not lost:
            return None
        name = (lost or names)[0]
        whole = value.strip() == f"${{{name}}}"
        return UnresolvedReference(path, name, not lost, filled, whole, value.strip(), secret)
    bare = value.strip()
    other = _OTHERS.fullmatch(bare)
    word = next((one for one in other.groups() if one), "") if other else ""
    if not word and secret and _NAME.fullmatch(bare) and path[-1] != "key_env":
        word = bare
    if not word or path[-1] == "key_env" or not re.match(r"[A-Za-z_]", word):
        return None
    is_set = bool(world.variables.get(word))
    if not is_set and not word.isupper():
        return None  # a model or a key may start with a dollar sign
    return UnresolvedReference(path, word, is_set, filled, True, f"${{{word}}}", secret)


def _is_address(value: str) -> bool:
    return "://" in value


def value_of(world: SettingInputs, name: str) -> str | None:
    """Return a variable's value if it may be written to config.yaml: set, and not a secret."""
    found = world.variables.get(name)
    if not found or name.upper().endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")):
        return None
    plain = state(world.release, text(found)) == "usable" and "\n" not in found
    return str(found).strip() if plain else None
