"""A value together with the place that it was read from, and answers made of such values."""

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
    """A path in config.yaml, a variable, the label of an entry, or what the default is of."""
    file: str | None = None
    line: int | None = None
    via: Source | None = None
    """What the value there refers to: the variable that `${NAME}` or `key_env` names."""

    @property
    def place(self) -> str:
        """The file and the line, or in words what else it is."""
        if self.file:
            return f"{self.file}:{self.line}" if self.line else self.file
        return "the gateway's environment" if self.kind == PROCESS else "built in"

    def __str__(self) -> str:
        said = f"{self.name} in {self.place}" if self.kind != DEFAULT else self.name
        return f"{said}, from {self.via}" if self.via else said


BUILT_IN = Source(DEFAULT, "built in")


class Text(str):
    """Text that knows where it was read. May be a secret: only its source is ever shown."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, value: str, source: Source = BUILT_IN) -> Text:
        made = super().__new__(cls, value)
        made.source = source
        return made

    def like(self, value: str) -> Text:
        """Another text from the same place."""
        return Text(value, self.source)


def text(value: Any, source: Source = BUILT_IN) -> Text:
    """Any value as Hermes makes text of it where it writes `str(value or "")`."""
    if isinstance(value, Text):
        return value
    return Text(str(value) if value else "", source)


def stripped(value: Any) -> Text:
    """The same without the space around it."""
    found = text(value)
    return found.like(found.strip())


class Answer(NamedTuple):
    """What counts, where it comes from, and what else was set and does not count."""

    value: str | None
    source: Source
    shadows: tuple[Answer, ...] = ()


class Key(NamedTuple):
    """A key or a token: never its value."""

    name: str
    """The variable, the path or the label that it goes by."""
    source: Source
    state: str
    """`usable`, `placeholder`, `masked`, `unresolved`, `not needed` or `missing`."""
    fingerprint: str | None = None
    """Tells whether two are the same; does not give the value away."""
    shadows: tuple[Key, ...] = ()
    faults: tuple[str, ...] = ()
    """What is sent along with it and is no part of it: `comment`, `quotes`, `bearer`, …"""
    vendor: str | None = None
    """The domain of whom it was made by, where its first letters tell."""
