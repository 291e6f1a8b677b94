"""Whole entries out of a text that is broken in its middle.

Hermes writes every store with two blanks for each level, so an entry begins on a line of its own,
and no text inside of one can hold such a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.stores.catalogue import LIST, Store

REPLACED = "\ufffd"
"""Stands where a byte was that means nothing."""
_DECODER = json.JSONDecoder()
_KEY = r'"((?:[^"\\\n]|\\.){0,500})": ?'


class Salvaged(NamedTuple):
    """What is left of a broken text."""

    values: Any
    lost: tuple[str, ...]
    """The entries that begin there and cannot be read."""


def salvage(text: str, store: Store) -> Salvaged:
    """Every entry that can be read by itself, and the names of those that cannot."""
    values: Any = [] if store.top == LIST else {}
    lost: list[str] = []
    for path in store.entries:
        listed = (store.inside if path else store.top) == LIST
        found: Any = [] if listed else {}
        part = _part(text, path[0]) if path else text
        for number, (key, entry) in enumerate(_entries(part, len(path) + 1, listed=listed)):
            if entry is None and listed:
                lost.append(called(key, store) or f"number {number + 1}")
            elif entry is None:
                lost.append(".".join((*path, key)) if len(store.entries) > 1 else key)
            elif listed:
                found.append(entry)
            else:
                found[key] = entry
        if path:
            values[path[0]] = found
        else:
            values = found
    return Salvaged(values, tuple(lost))


def _part(text: str, name: str) -> str:
    """The lines of one container of the document."""
    begun = re.search(rf'^ {{2}}"{re.escape(name)}": ?[\[{{]', text, re.MULTILINE)
    if begun is None:
        return ""
    ended = re.search(r"^ {2}[\]}]", text[begun.end() :], re.MULTILINE)
    return text[begun.end() :][: ended.start() if ended else None]


def _entries(text: str, depth: int, *, listed: bool) -> Iterator[tuple[str, Any]]:
    """Each with its key, or its own words in a list; None where it cannot be read."""
    start = rf"^ {{{2 * depth}}}" + (r"(?=[{\[])" if listed else _KEY)
    marks = list(re.finditer(start, text, re.MULTILINE))
    for mark, after in zip(marks, [*marks[1:], None], strict=False):
        piece = text[mark.end() : after.start() if after else None]
        key = piece if listed else _unescaped(mark[1])
        try:
            value, end = _DECODER.raw_decode(piece)
        except (ValueError, RecursionError):
            yield key, None
            continue
        rest = piece[end:].strip(" \t\r\n,]}\0")
        sound = value is not None and not rest and REPLACED not in piece[:end] + key
        yield key, value if sound else None


def _unescaped(key: str) -> str:
    try:
        return str(json.loads(f'"{key}"'))
    except ValueError:
        return key


def called(piece: str, store: Store) -> str | None:
    """What an entry of a list is called, if as much of it can be read."""
    for field in store.names:
        said = re.search(rf'"{re.escape(field)}"\s*:\s*"([^"\\]{{1,80}})"', piece)
        if said:
            return said[1]
    return None
