"""The edits that config.yaml and .env support, and the settings that must result from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CannotFix
from hermes_doctor.hermes.settings.document import dotted_path

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

_DEEPEST = 100


def apply_to_values(values: Any, edits: Sequence[ConfigEdit]) -> Any:
    """Return a deep copy of the settings with the edits applied."""
    made = _copy(values, 0)
    for edit in edits:
        if isinstance(edit, Put):
            _put(made, edit.path, _copy(edit.value, 0))
        elif isinstance(edit, Drop):
            _drop(made, edit.path)
        else:
            _rename(made, edit.path, edit.new)
    return made


def _copy(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise CannotFix("config.yaml refers to itself. Change it by hand.")
    if isinstance(value, dict):
        return {key: _copy(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_copy(one, depth + 1) for one in value]
    return str(value) if isinstance(value, str) else value


def _put(values: Any, path: Path, value: Any) -> None:
    here = values
    for place, part in enumerate(path[:-1]):
        below = _child(here, part)
        if below is None:
            below = {}
            _set(here, part, below, path[: place + 1])
        here = below
    _set(here, path[-1], value, path)


def _set(here: Any, part: str | int, value: Any, path: Path) -> None:
    if isinstance(here, dict) and isinstance(part, str):
        here[part] = value
    elif isinstance(here, list) and isinstance(part, int) and 0 <= part <= len(here):
        here[part : part + 1] = [value]
    else:
        raise CannotFix(
            "{setting} cannot be set, because its parent is not a section. Change it by hand.",
            setting=dotted_path(path),
        )


def _drop(values: Any, path: Path) -> None:
    here = _above(values, path)
    part = path[-1]
    if isinstance(here, dict):
        here.pop(part, None)
    elif isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here):
        del here[part]


def _rename(values: Any, path: Path, new: str) -> None:
    here = _above(values, path)
    if not isinstance(here, dict) or path[-1] not in here:
        return
    if new in here:
        raise CannotFix(
            "Both {setting} and {old} are set. Remove one by hand.",
            setting=dotted_path((*path[:-1], new)),
            old=path[-1],
        )
    pairs = list(here.items())
    here.clear()
    here.update({new if key == path[-1] else key: value for key, value in pairs})


def _above(values: Any, path: Path) -> Any:
    here = values
    for part in path[:-1]:
        here = _child(here, part)
    return here


def _child(here: Any, part: str | int) -> Any:
    if isinstance(here, dict):
        return here.get(part)
    if isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here):
        return here[part]
    return None
