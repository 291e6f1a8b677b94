"""A cause of failures, how texts that name it are recognised, and their packed form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_doctor.lazy import EMPTY, NamedTuple

FAMILIES = (
    "machine", "network", "remote", "login", "data", "code", "time", "limits", "settings",
)  # fmt: skip
FIELDS = (
    "host", "port", "path", "module", "status", "code", "seconds", "name", "program", "column",
    "table", "value", "count", "line", "model",
)  # fmt: skip
"""The group names that the pattern of a cause may use."""
LONGEST_TITLE = 48


class Cause(NamedTuple):
    """A reason of failures; any part of the bot may report it."""

    name: str
    family: str
    rank: int
    """Of several causes in an entry, the one with the lowest rank is to blame."""
    code: str
    codes: Sequence[str] = ()
    """Other codes of findings that say the same cause."""
    by_part: Mapping[str, str] = EMPTY
    """Part of the bot → code, where it is not `code`."""
    title: str = ""
    """A fragment with {fields}; a form for unknown fields follows ` | `."""
    detail: str = ""
    advice: str = ""
    """One sentence that says what to do."""
    transient: bool = False
    """Whether it may pass without anybody doing something."""

    def code_in(self, part: str) -> str:
        """Return the code of findings about this cause in a part of the bot."""
        return self.by_part.get(part, self.code)

    def means(self, code: str) -> bool:
        """Tell whether a finding with this code says the same cause."""
        return code == self.code or code in self.codes or code in self.by_part.values()

    def title_with(self, fields: Mapping[str, str]) -> str:
        """Return the title; without its fields if one is not known or makes it too long."""
        full, _, plain = self.title.partition(" | ")
        try:
            filled = full.format_map(fields)
        except KeyError:
            return plain
        return filled if len(filled) <= LONGEST_TITLE or not plain else plain


class Signs(NamedTuple):
    """How texts that name a cause are recognised."""

    errors: Sequence[str] = ()
    """Names of errors of operating systems, such as EADDRINUSE."""
    exceptions: Sequence[str] = ()
    """Names of exception classes."""
    texts: Sequence[tuple[str, Sequence[Sequence[str]]]] = ()
    """Patterns, each with sets of literals in small letters; every match has one of each set."""


def pack(cause: Cause, signs: Signs) -> list[Any]:
    """Convert a cause to a list that JSON can store."""
    return [[*cause[:5], dict(cause.by_part), *cause[6:]], [*signs]]


def unpack(values: list[Any]) -> tuple[Cause, Signs]:
    """Rebuild a cause from its packed form."""
    return Cause(*values[0]), Signs(*values[1])
