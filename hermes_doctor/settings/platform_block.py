"""Look up all settings of one platform, in config.yaml and in variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermes_doctor.settings.inputs import ABSENT, SettingInputs, section
from hermes_doctor.settings.sourced_text import Text, text

Path = tuple[str, ...]
_FALSE = ("false", "0", "no", "off")


class Block:
    """The settings of a platform by key, including secrets.

    Hermes reads some keys in one place only. This class finds a setting in any place, so that one
    in the wrong place is not reported as missing.
    """

    def __init__(self, world: SettingInputs, name: str) -> None:
        self.world = world
        self.name = name
        places: tuple[Path, ...] = ((), ("platforms",), ("gateway", "platforms"))
        self.paths = [(*place, name, *more) for place in places for more in ((), ("extra",))]

    def value(self, key: str, *variables: str) -> Text:
        """Return a setting as text, from a variable or config.yaml; empty if it is not set."""
        for variable in variables:
            if found := self.world.getenv(variable):
                return found
        for path, value in self._written(key):
            if value not in (None, "") and not isinstance(value, dict | list):
                return Text(str(value).strip(), self.world.source(value, *path))
        return ABSENT

    def mapping(self, key: str) -> tuple[Path, Mapping[Any, Any]]:
        """Return a setting that is a mapping, and its path; empty if there is none."""
        for path, value in self._written(key):
            if isinstance(value, dict) and value:
                return path, value
        return (), {}

    def path(self, key: str) -> Path | None:
        """Return the path of a setting in config.yaml."""
        return next((path for path, _ in self._written(key)), None)

    @property
    def is_off(self) -> bool:
        """Whether config.yaml disables the platform."""
        return text(str(self.value("enabled"))).lower() in _FALSE

    def _written(self, key: str) -> Iterator[tuple[Path, Any]]:
        for path in self.paths:
            block = section(self.world.raw, *path)
            if key in block:
                yield (*path, key), block[key]
