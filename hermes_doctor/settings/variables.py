"""What a gateway of this home goes by: its variables, and config.yaml.

A light answer to "which value counts": the variables that the running process was started with
(or those that its service gives), overlaid by .env as Hermes overlays them. Where config.yaml
cannot be read, it is empty, as it is to Hermes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hermes_doctor.lazy import NamedTuple, pattern
from hermes_doctor.model import CouldNotLook
from hermes_doctor.system.files import snapshot

if TYPE_CHECKING:
    from hermes_doctor.probes.probes import Probes

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


def read(probes: Probes) -> Settings:
    """The settings of the running gateway, or of the one that would be started."""
    unsure = []
    try:
        before = started_with(probes)
    except CouldNotLook as doubt:
        before = {}
        unsure.append(str(doubt))
    file: dict[str, str] = {}
    try:
        found = probes.env()
        file = parse(found.text or "") if found else {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    config: Mapping[str, Any] = {}
    try:
        written = probes.config()
        config = (written.values if written else None) or {}
    except CouldNotLook as doubt:
        unsure.append(str(doubt))
    return Settings({**before, **file}, frozenset(file), config, tuple(unsure))


def started_with(probes: Probes) -> Mapping[str, str]:
    """The environment that the gateway was, or would be, started with."""
    gateways = probes.gateways()
    if gateways:
        environment = probes.vitals(gateways[0].pid).environment
        if environment is None:
            raise CouldNotLook(f"you may not see the environment of process {gateways[0].pid}")
        return environment
    if not probes.network:  # who asks managers pays for it; a quick look has no use for this
        return {}
    owner = probes.supervision().owner
    return owner.environment if owner else {}


def is_managed(probes: Probes) -> bool:
    """Whether a package manager writes this home, as Hermes tells it."""
    if snapshot(probes.home / ".managed").kind != "absent":
        return True
    return bool(started_with(probes).get("HERMES_MANAGED", "").strip())


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
