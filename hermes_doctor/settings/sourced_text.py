"""Values that remember where they were read, and answers made of them."""

from __future__ import annotations

from typing import Any

from hermes_doctor.lazy import NamedTuple

CONFIG, ENV, PROCESS, POOL, LOGIN, DEFAULT = (
    "config",
    "env",
    "process",
    "pool",
    "login",
    "default",
)


class Source(NamedTuple):
    """Where a value comes from."""

    kind: str
    """`config`, `env`, `process`, `pool`, `login` or `default`."""
    name: str
    """A path in config.yaml, a variable, an entry's label, or what the default belongs to."""
    file: str | None = None
    line: int | None = None
    via: Source | None = None
    """The source that the value refers to: the variable in `${NAME}` or `key_env`."""

    @property
    def place(self) -> str:
        """The file and line, or a description."""
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return "the gateway's environment" if self.kind == PROCESS else "built in"

    def __str__(self) -> str:
        said = f"{self.name} in {self.place}" if self.kind != DEFAULT else self.name
        return f"{said}, from {self.via}" if self.via else said


BUILT_IN = Source(DEFAULT, "built in")


class Text(str):
    """A text, possibly a secret, that remembers its source."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, value: str, source: Source = BUILT_IN) -> Text:
        made = super().__new__(cls, value)
        made.source = source
        return made

    def like(self, value: str) -> Text:
        """Return another text with the same source."""
        return Text(value, self.source)


def text(value: Any, source: Source = BUILT_IN) -> Text:
    """Convert a value to text as Hermes' `str(value or "")` does."""
    if isinstance(value, Text):
        return value
    return Text(str(value) if value else "", source)


def stripped_text(value: Any) -> Text:
    """Convert a value to text without surrounding spaces."""
    found = text(value)
    return found.like(found.strip())


class ResolvedValue(NamedTuple):
    """The value that is used, its source, and the values that it overrides."""

    value: str | None
    source: Source
    shadows: tuple[ResolvedValue, ...] = ()


class Key(NamedTuple):
    """A key or a token, described without its value."""

    name: str
    """Its variable, path or label."""
    source: Source
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved`, `not needed` or `missing`."""
    fingerprint: str | None = None
    """Tells whether two keys are equal without revealing them."""
    shadows: tuple[Key, ...] = ()
    faults: tuple[str, ...] = ()
    """What is sent along with it but is not part of it: `comment`, `quotes`, `bearer`, …"""
    vendor: str | None = None
    """The issuer's domain, if its prefix shows it."""
    length: int = 0
    """How many characters it has."""
