"""Find keys and tokens in plain text in config.yaml, which belong in .env."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple, pattern

if TYPE_CHECKING:
    from hermes_doctor.settings.inputs import SettingInputs
    from hermes_doctor.settings.sourced_text import Source

_SECRET = pattern(
    r"(?i)(^|_)(api_?key|token|secret|password|passwd|private_key|auth_key|signing_key|"
    r"app_secret|client_secret|access_key)$"
)
_NOT = frozenset(("max_tokens", "key_env", "api_key_env", "token_env", "public_key"))
_DEEPEST, _MOST, _SHORTEST = 8, 2000, 8

Path = tuple[str | int, ...]


class PlainSecret(NamedTuple):
    """The place of a plain secret, without its value."""

    path: str
    source: Source


def find(inputs: SettingInputs) -> Iterator[PlainSecret]:
    """Yield every value that is a usable key or token according to its name."""
    from hermes_doctor.settings.key_state import state
    from hermes_doctor.settings.sourced_text import Text

    for path, value in suspects(inputs.raw):
        source = inputs.document.source(*path)
        if state(inputs.release, Text(value, source)) == "usable":
            yield PlainSecret(source.name, source)


def suspects(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the texts whose names are those of secrets, including secrets."""
    for path, value in _texts(values):
        name = str(path[-1])
        if len(value) >= _SHORTEST and name not in _NOT and _SECRET.search(name):
            yield path, value


def _texts(values: Mapping[Any, Any]) -> Iterator[tuple[Path, str]]:
    """Yield every text of a configuration with its path, within generous limits."""
    left: list[tuple[Path, Any]] = [((), values)]
    for path, value in left:  # the list grows while it is iterated
        if isinstance(value, str):
            yield path, value
        elif len(path) >= _DEEPEST or len(left) > _MOST:
            continue
        elif isinstance(value, dict):
            left += [((*path, key), one) for key, one in value.items() if isinstance(key, str)]
        elif isinstance(value, list):
            left += [((*path, number), one) for number, one in enumerate(value)]
