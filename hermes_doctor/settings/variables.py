"""What a gateway of this home goes by: its variables, and config.yaml.

A light answer to "which value counts": the variables that the running process was started with
(or those that its service gives), overlaid by .env as Hermes overlays them. Where config.yaml
cannot be read, it is empty, as it is to Hermes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple, pattern

if TYPE_CHECKING:
    pass

_LINE = pattern(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_COMMENT = pattern(r"\s#.*$")
_TRUE = frozenset({"true", "1", "yes", "on"})


class Settings(NamedTuple):
    """All of it. Holds secrets: never shown, only names are."""

    variables: Mapping[str, str]
    file: frozenset[str]
    """The names that come from .env."""
    config: Mapping[str, Any]
    unsure: tuple[str, ...]
    """What could not be read, and why."""

    def value(self, name: str) -> str:
        """A variable's value without the space around it; empty when it is not set."""
        return self.variables.get(name, "").strip()

    def is_set(self, name: str) -> bool:
        """Whether a variable counts: not empty, and not `false` where it is a switch."""
        value = self.value(name)
        return value.lower() in _TRUE if name.endswith("_ENABLED") else bool(value)

    def source(self, name: str) -> str:
        """Where a variable comes from, for people."""
        return ".env" if name in self.file else "the gateway's environment"


def parse(text: str) -> dict[str, str]:
    """The variables of a .env, quotes and comments taken off."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match and not line.lstrip().startswith("#"):
            found[match[1]] = _bare(match[2])
    return found


def _bare(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return "" if value.startswith("#") else _COMMENT.sub("", value)


def section(config: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """A part of config.yaml; empty when it is not there or is something else."""
    here: Any = config
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}
