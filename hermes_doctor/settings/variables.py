"""The variables and config.yaml of a gateway, without resolving providers

The variables that the running process was started with (or those of its service) are overridden by
.env, as in Hermes. If config.yaml cannot be read, it is empty, as for Hermes.
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
    """The gateway's variables and config.yaml, of which only names may be shown."""

    variables: Mapping[str, str]
    file: frozenset[str]
    """The names that come from .env."""
    config: Mapping[str, Any]
    unreadable: tuple[str, ...]
    """What could not be read, and why."""

    def value(self, name: str) -> str:
        """Return a variable without surrounding spaces; empty if it is not set."""
        return self.variables.get(name, "").strip()

    def is_set(self, name: str) -> bool:
        """Tell whether a variable is set: not empty, and true if it is a switch."""
        value = self.value(name)
        return value.lower() in _TRUE if name.endswith("_ENABLED") else bool(value)

    def source(self, name: str) -> str:
        """Return where a variable is set, for display."""
        return ".env" if name in self.file else "the gateway's environment"


def parse(text: str) -> dict[str, str]:
    """Parse a .env, removing quotes and comments."""
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
    """Return a section of config.yaml; empty if it is missing or not a mapping."""
    here: Any = config
    for key in path:
        here = here.get(key) if isinstance(here, Mapping) else None
    return here if isinstance(here, Mapping) else {}
