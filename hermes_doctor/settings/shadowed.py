"""Find settings of config.yaml that a variable overrides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import unknown_keys
from hermes_doctor.settings.document import Path
from hermes_doctor.settings.inputs import section
from hermes_doctor.settings.resolved import Resolved
from hermes_doctor.settings.sourced_text import CONFIG, Source, Text

_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class OverriddenSetting(NamedTuple):
    """A setting, and the variable that overrides it."""

    path: Path
    variable: str
    source: Source
    """Where the variable is set."""


def overridden_settings(found: Resolved) -> Iterator[OverriddenSetting]:
    """Yield the overridden settings of platforms that would start, if the values differ."""
    world = found.world
    started = {one.name for one in found.platforms}
    for name, variable in unknown_keys.entries_for_release("bridged", world.release).items():
        path = tuple(name.split("."))
        if path[-2] in started:
            value = section(world.raw, *path[:-1]).get(path[-1])
            yield from _one(found, path, value, variable)
    for name, value in world.raw.items():
        if isinstance(name, str) and name.isupper() and isinstance(value, str | int | float):
            yield from _one(found, (name,), value, name)
    for own in found.platforms:
        for key in own.tokens:
            for other in key.shadows:
                differs = other.fingerprint != key.fingerprint
                if other.source.kind == CONFIG and key.source.kind != CONFIG and differs:
                    yield OverriddenSetting(
                        tuple(other.source.name.split(".")), key.name, key.source
                    )


def _one(found: Resolved, path: Path, value: Any, variable: str) -> Iterator[OverriddenSetting]:
    counts = found.world.variables.get(variable)
    if value is None or counts is None or not counts or counts.source.kind == CONFIG:
        return
    if _meaning(value) != _meaning(counts):
        yield OverriddenSetting(path, variable, counts.source)


def _meaning(value: Any) -> frozenset[str]:
    """Normalise a setting, so that different notations of a value compare equal."""
    if isinstance(value, Text | str):
        bare = value.strip()
        if bare[:1] == "[" and bare[-1:] == "]":
            value = bare[1:-1].replace('"', "").replace("'", "")
        listed = str(value).split(",")
    else:
        listed = value if isinstance(value, list) else [value]
    return frozenset(_word(one) for one in listed) - {""}


def _word(value: Any) -> str:
    word = str(value).strip().lower()
    return "true" if word in _TRUE else "false" if word in _FALSE else word
