"""All that is set for one platform: in its blocks of config.yaml, and as variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.settings.inputs import ABSENT, World, section
from hermes_doctor.settings.sourced_text import Text, text

Path = tuple[str, ...]
_FALSE = ("false", "0", "no", "off")


class Block:
    """The settings of a platform by their keys. Holds secrets.

    Hermes reads some keys in one place only. Whoever asks here whether something is set gets it
    from any place, so that what stands in the wrong one is not taken for missing.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        places: tuple[Path, ...] = ((), ("platforms",), ("gateway", "platforms"))
        self.paths = [(*place, name, *more) for place in places for more in ((), ("extra",))]

    def value(self, key: str, *variables: str) -> Text:
        """A setting as text, from a variable or from config.yaml; empty when nothing sets it."""
        for variable in variables:
            if found := self.world.getenv(variable):
                return found
        for path, value in self._written(key):
            if value not in (None, "") and not isinstance(value, dict | list):
                return Text(str(value).strip(), self.world.source(value, *path))
        return ABSENT

    def mapping(self, key: str) -> tuple[Path, Mapping[Any, Any]]:
        """A setting that has parts, and where it stands; empty when there is none."""
        for path, value in self._written(key):
            if isinstance(value, dict) and value:
                return path, value
        return (), {}

    def path(self, key: str) -> Path | None:
        """Where config.yaml has a setting."""
        return next((path for path, _ in self._written(key)), None)

    @property
    def is_off(self) -> bool:
        """Whether config.yaml says that the platform is not wanted."""
        return text(str(self.value("enabled"))).lower() in _FALSE

    def _written(self, key: str) -> Iterator[tuple[Path, Any]]:
        for path in self.paths:
            block = section(self.world.raw, *path)
            if key in block:
                yield (*path, key), block[key]
