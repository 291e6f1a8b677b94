"""What can be asked of config.yaml and of .env."""

from __future__ import annotations

from typing import Any

from hermes_doctor.lazy import NamedTuple

Path = tuple[str | int, ...]


class Put(NamedTuple):
    """Give a setting this value; one that is not there is added, and what it stands in too."""

    path: Path
    value: Any


class Rename(NamedTuple):
    """Give a key another name; its value stays."""

    path: Path
    new: str


class Drop(NamedTuple):
    """Take a key and its value out."""

    path: Path


class Assign(NamedTuple):
    """Give a variable this value, where it counts; one that is not there is added at the end."""

    name: str
    value: str


class Unset(NamedTuple):
    """Take all lines of a variable out."""

    name: str


class Mend(NamedTuple):
    """Write one line differently, or as several. The texts are without their line ending."""

    line: int
    old: str
    new: str


ConfigEdit = Put | Rename | Drop
EnvEdit = Assign | Unset | Mend
Edit = ConfigEdit | EnvEdit
