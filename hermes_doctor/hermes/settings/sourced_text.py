"""Values that remember where they were read, and answers made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.redaction import redact_unless_variable

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
        where = f"{self.name} in {self.place}" if self.kind != DEFAULT else self.name
        return f"{where}, from {self.via}" if self.via else where


BUILT_IN = Source(DEFAULT, "built in")


class Text(str):
    """A text, possibly a secret, that remembers its source."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, value: str, source: Source = BUILT_IN) -> Text:
        sourced = super().__new__(cls, value)
        sourced.source = source
        return sourced

    def like(self, value: str) -> Text:
        """Return another text with the same source."""
        return Text(value, self.source)

    def without_slash(self) -> Text:
        """Return an address without slashes at its end."""
        return self.like(self.rstrip("/"))


def text(value: Any, source: Source = BUILT_IN) -> Text:
    """Convert a value to text as Hermes' `str(value or "")` does."""
    if isinstance(value, Text):
        return value
    return Text(str(value) if value else "", source)


def stripped_text(value: Any) -> Text:
    """Convert a value to text without surrounding spaces."""
    sourced = text(value)
    return sourced.like(sourced.strip())


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


NO_KEY = Text("no-key-required", Source(DEFAULT, "no key"))


def missing_key(variable: str) -> Text:
    """Return what Hermes sends to a provider whose `key_env` names a variable that is not set."""
    source = NO_KEY.source._replace(via=Source(DEFAULT, redact_unless_variable(variable)))
    return Text(NO_KEY, source)


class Unresolved(Exception):
    """No provider can be used for this request."""

    def __init__(self, kind: str, why: str, *, falls_back: bool = True) -> None:
        super().__init__(why)
        self.kind = kind
        """`unknown`, `none`, `key`, `login`, `disabled`, `address` or `malformed`."""
        self.falls_back = falls_back
        """Whether Hermes tries the fallback chain instead."""


class RequestSettings(NamedTuple):
    """The provider, address, protocol and secret key of a request."""

    provider: str
    base_url: Text
    api_mode: str
    key: Text
    urls: Sequence[Text] = ()
    """Addresses that are set but not used."""
    keys: Sequence[Text] = ()
    """Keys that are set but not used."""
