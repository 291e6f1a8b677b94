"""The inputs that decide a gateway's settings: files, variables and release."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from hermes_doctor.core import message
from hermes_doctor.core.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system.files import MEGABYTE, size
from hermes_doctor.hermes.knowledge.releases import Release
from hermes_doctor.hermes.settings import config_yaml, env_file
from hermes_doctor.hermes.settings.document import PROCESS, Document, Source, Text, text
from hermes_doctor.hermes.settings.env_file import EnvReadings

_REFERENCE = pattern(r"\${([^}]+)}")
_MOVED = ("provider", "base_url", "context_length")
ABSENT = Text("")
MOST_EXPANDED = 4 * MEGABYTE
"""Characters that references in config.yaml may be replaced by."""


class SettingInputs:
    """The files and variables of one gateway, including secrets."""

    def __init__(
        self,
        release: Release,
        document: Document,
        readings: EnvReadings = env_file.NO_VARIABLES,
        started_with: Mapping[str, str] = EMPTY,
        store: Mapping[str, Any] = EMPTY,
        root_store: Mapping[str, Any] = EMPTY,
        now: float = 0.0,
    ) -> None:
        self.release = release
        self.document = document
        self.readings = readings
        self.started_with = started_with
        """The environment that the process was, or would be, started with."""
        self.store = store
        """auth.json."""
        self.root_store = root_store
        """auth.json of the root home if this home is a profile."""
        self.now = now

    @property
    def raw(self) -> Mapping[Any, Any]:
        """config.yaml as it is written."""
        return self.document.values

    @cached_property
    def variables(self) -> Mapping[str, Text]:
        """The gateway's final environment: .env overrides, config.yaml fills gaps.

        This and `config` raise CouldNotLook if references make the values too long.
        """
        found = {
            name: Text(value, Source(PROCESS, name)) for name, value in self.started_with.items()
        }
        found |= self.readings.dotenv.values
        found = {name: env_file.ascii_credential(name, value) for name, value in found.items()}
        fill = _Expansion(found).fill
        for name, value in self.raw.items():
            if isinstance(name, str) and isinstance(value, str | int | float):
                try:
                    said = str(fill(value))
                except ValueError:  # a number with more digits than Python converts
                    continue
                found.setdefault(name, Text(said, self.document.source(name)))
        return found

    def getenv(self, name: str) -> Text:
        """Return a variable without surrounding spaces; empty if it is not set."""
        failure = self.variables.get(name, ABSENT)
        return failure.like(failure.strip())

    def named_variable(self, name: Text) -> Text:
        """Return the variable that a setting names, with this setting as its source."""
        value = self.getenv(name) if name else ABSENT
        return Text(value, name.source._replace(via=value.source)) if value else ABSENT

    def dotenv_first(self, name: str) -> Text:
        """Return a key of a built-in provider as Hermes reads it: from .env first."""
        failure = self.readings.own.values.get(name, ABSENT)
        bare = failure.like(failure.strip())
        if bare.startswith("op://") and self.release.since(0, 18, 1) and self.getenv(name):
            return self.getenv(name)
        return bare or self.getenv(name)

    def environment_first(self, name: str) -> Text:
        """Return a variable as older code reads it: from the environment first, then from .env."""
        if name in self.variables:
            return self.getenv(name)
        return self.readings.own.values.get(name, ABSENT)

    def layers(self, name: str) -> list[Text]:
        """Return every place that sets a variable, the one that is used first."""
        own, seen = self.readings.own.values.get(name), self.variables.get(name)
        process = self.started_with.get(name)
        found = [one for one in (seen, own) if one is not None]
        if process is not None:
            found.append(Text(process, Source(PROCESS, name)))
        return list({one.source: one for one in found if one}.values())

    @cached_property
    def config(self) -> Mapping[Any, Any]:
        """config.yaml after Hermes has normalised and expanded it."""
        ordered = normalise_config(self.raw, self.release)
        found: Mapping[Any, Any] = _Expansion(self.variables).fill(ordered)
        return found

    @cached_property
    def gateway(self) -> Mapping[Any, Any]:
        """config.yaml as the gateway reads the model from it: never expanded."""
        return normalise_config(self.raw, self.release) if self.release.since(0, 18) else self.raw

    def source(self, value: Any, *path: str | int) -> Source:
        """Return the position of a value in config.yaml."""
        return value.source if isinstance(value, Text) else self.document.source(*path)


def normalise_config(config: Mapping[Any, Any], release: Release) -> dict[Any, Any]:
    """Return the configuration with model settings moved into `model` and aliases replaced."""
    result = dict(config)
    model = result.get("model")
    newer = release.since(0, 18)
    spelt = isinstance(model, dict) and any(model.get(k) for k in ("api_base", "model", "name"))
    moved = any(result.get(k) for k in (*_MOVED, *(("api_base",) if newer else ())))
    if not moved and not (newer and spelt):
        return result
    made: dict[Any, Any] = dict(model) if isinstance(model, dict) else {}
    if not isinstance(model, dict) and model:
        made = {"default": model}
    for key in _MOVED:
        if result.get(key) and not made.get(key):
            made[key] = result[key]
        result.pop(key, None)
    if newer:
        for alias in (result.pop("api_base", None), made.pop("api_base", None)):
            if alias and not made.get("base_url"):
                made["base_url"] = alias
        if not made.get("default") and (made.get("model") or made.get("name")):
            made["default"] = made.get("model") or made.get("name")
        if made.get("default"):
            made.pop("model", None)
            made.pop("name", None)
    result["model"] = made
    return result


class _Expansion:
    """Replaces every `${NAME}` of a set variable, up to MOST_EXPANDED characters in all."""

    def __init__(self, variables: Mapping[str, Text]) -> None:
        self._variables = variables
        self._left = MOST_EXPANDED
        self._done: dict[int, Any] = {}

    def fill(self, value: Any) -> Any:
        """Return the value with the references replaced."""
        if isinstance(value, str):
            return self._text(text(value)) if "${" in value else value
        if not isinstance(value, dict | list):
            return value
        if id(value) not in self._done:
            made: Any = {} if isinstance(value, dict) else []
            self._done[id(value)] = made
            if isinstance(value, dict):
                made.update({key: self.fill(one) for key, one in value.items()})
            else:
                made += [self.fill(one) for one in value]
        return self._done[id(value)]

    def _text(self, value: Text) -> Text:
        used: list[Source] = []

        def fill(match: re.Match[str]) -> str:
            failure = self._variables.get(match[1])
            if failure is None:
                return match[0]
            self._left -= len(failure)
            if self._left < 0:
                raise CouldNotLook(
                    message.text(
                        "{file}: its variables expand to more than {most}",
                        file=config_yaml.NAME,
                        most=size(MOST_EXPANDED),
                    )
                )
            used.append(failure.source)
            return str(failure)

        filled = _REFERENCE.sub(fill, value)
        source = value.source._replace(via=used[0]) if used else value.source
        return Text(filled, source)


def whole_number(value: Any) -> int | None:
    """Return a number as Hermes converts it; None if it cannot."""
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def references(value: str) -> list[str]:
    """Return the names in `${NAME}` of a text."""
    return _REFERENCE.findall(value)


def section(config: Mapping[Any, Any], *path: str) -> dict[Any, Any]:
    """Return a section of a configuration; empty if it is missing or not a mapping."""
    here: Any = config
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
    return here if isinstance(here, dict) else {}


_ASSIGNMENT = pattern(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
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


def parse_variables(text: str) -> dict[str, str]:
    """Parse a .env, removing quotes and comments."""
    found = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line)
        if match and not line.lstrip().startswith("#"):
            found[match[1]] = _bare(match[2])
    return found


def _bare(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"') and (end := value.find(quote, 1)) > 0:
        return value[1:end]
    return "" if value.startswith("#") else _COMMENT.sub("", value)
