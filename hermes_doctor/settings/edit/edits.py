"""The edits that config.yaml and .env support."""

from __future__ import annotations

from typing import Any

from hermes_doctor.lazy import NamedTuple

Path = tuple[str | int, ...]


class Put(NamedTuple):
    """Set a setting; it and its parent sections are added if they are missing."""

    path: Path
    value: Any


class Rename(NamedTuple):
    """Rename a key and keep its value."""

    path: Path
    new: str


class Drop(NamedTuple):
    """Remove a key and its value."""

    path: Path


class Assign(NamedTuple):
    """Set a variable where it takes effect; a missing one is appended to the file."""

    name: str
    value: str


class Unset(NamedTuple):
    """Remove all lines of a variable."""

    name: str


class ReplaceLine(NamedTuple):
    """Replace one line by one or several others, given without line endings."""

    line: int
    old: str
    new: str


ConfigEdit = Put | Rename | Drop
EnvEdit = Assign | Unset | ReplaceLine
Edit = ConfigEdit | EnvEdit
