"""Find characters that look like spaces or quotes and become part of names and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.settings import config_file
from hermes_doctor.settings.document import Document, Path
from hermes_doctor.settings.yaml_mistakes import BLANKS

_QUOTES = {"“": "”", "‘": "’", "„": "“", "«": "»", "”": "”", "’": "’"}


class Lookalike(NamedTuple):
    """A name or value with such characters. `value` may be a secret."""

    path: Path
    line: int
    blank: bool
    """True for a blank before a name, false for quotes around a value."""
    value: str = ""
    """The value without the quotes."""


def lookalikes(document: Document) -> Iterator[Lookalike]:
    """Yield each name or value with lookalike characters; the file must parse."""
    for path, place in document.keys.items():
        if str(path[-1]).startswith(tuple(BLANKS)):
            yield Lookalike(path, place.line, True)
    for path, place in document.places.items():
        value = _at(document.values, path)
        if isinstance(value, str) and len(value) > 2 and _QUOTES.get(value[0]) == value[-1]:
            inside = value[1:-1]
            if not any(char.isspace() for char in inside):
                yield Lookalike(path, place.line, False, inside)


def without_blanks(data: bytes) -> bytes | None:
    """Replace odd blanks before names by spaces; None if the result does not parse."""
    from hermes_doctor.settings.yaml_mistakes import plain_spaces

    made = plain_spaces(data.decode("utf-8")).encode()
    return made if config_file.parse(made)[0] else None


def _at(values: Any, path: Path) -> Any:
    here = values
    for part in path:
        try:
            here = here[part]
        except (KeyError, IndexError, TypeError):
            return None
    return here
