"""Keys and tokens that stand in config.yaml as they are, where .env is meant for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.patterns import pattern
from hermes_doctor.settings.secret import state
from hermes_doctor.settings.text import Source, Text
from hermes_doctor.settings.world import World
from hermes_doctor.values import NamedTuple

_SECRET = pattern(
    r"(?i)(^|_)(api_?key|token|secret|password|passwd|private_key|auth_key|signing_key|"
    r"app_secret|client_secret|access_key)$"
)
_NOT = frozenset(("max_tokens", "key_env", "api_key_env", "token_env", "public_key"))
_DEEPEST, _MOST, _SHORTEST = 8, 2000, 8


class Clear(NamedTuple):
    """One of them: where it stands, never what it is."""

    path: str
    source: Source


def find(world: World) -> Iterator[Clear]:
    """Every value that is a usable key or token by its name."""
    for path, value in texts(world.raw):
        name = str(path[-1])
        if name in _NOT or not _SECRET.search(name):
            continue
        source = world.document.source(*path)
        if len(value) >= _SHORTEST and state(world.release, Text(value, source)) == "usable":
            yield Clear(source.name, source)


def texts(values: Mapping[Any, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every text of a configuration with its path, as far as any real one goes."""
    left: list[tuple[tuple[str | int, ...], Any]] = [((), values)]
    seen = 0
    while left and seen < _MOST:
        path, value = left.pop(0)
        seen += 1
        if isinstance(value, str):
            if path:
                yield path, str(value)
        elif len(path) >= _DEEPEST:
            continue
        elif isinstance(value, dict):
            left += [((*path, key), one) for key, one in value.items() if isinstance(key, str)]
        elif isinstance(value, list):
            left += [((*path, number), one) for number, one in enumerate(value)]
