"""Extract the readable entries from JSON that is damaged in the middle.

Hermes indents every store by two spaces per level, so an entry starts on a line of its own, and no
text inside an entry can contain such a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from hermes_doctor.lazy import NamedTuple
from hermes_doctor.stores.catalogue import LIST, Store

REPLACED = "\ufffd"
"""Replaces bytes that are not valid UTF-8."""
_DECODER = json.JSONDecoder()
_KEY = r'"((?:[^"\\\n]|\\.){0,500})": ?'


class SalvagedEntries(NamedTuple):
    """The readable entries of a damaged text."""

    values: Any
    lost: tuple[str, ...]
    """The entries that start there and cannot be read."""


def salvage(text: str, store: Store) -> SalvagedEntries:
    """Return every entry that can be read on its own, and the names of the others."""
    values: Any = [] if store.top == LIST else {}
    lost: list[str] = []
    for path in store.entries:
        listed = (store.inside if path else store.top) == LIST
        found: Any = [] if listed else {}
        part = _part(text, path[0]) if path else text
        for number, (key, entry) in enumerate(_entries(part, len(path) + 1, listed=listed)):
            if entry is None and listed:
                lost.append(entry_name(key, store) or f"number {number + 1}")
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
    return SalvagedEntries(values, tuple(lost))


def _part(text: str, name: str) -> str:
    """Return the lines of one container of the document."""
    begun = re.search(rf'^ {{2}}"{re.escape(name)}": ?[\[{{]', text, re.MULTILINE)
    if begun is None:
        return ""
    ended = re.search(r"^ {2}[\]}]", text[begun.end() :], re.MULTILINE)
    return text[begun.end() :][: ended.start() if ended else None]


def _entries(text: str, depth: int, *, listed: bool) -> Iterator[tuple[str, Any]]:
    """Yield each entry with its key, or with its text in a list; None if it cannot be read."""
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


def entry_name(piece: str, store: Store) -> str | None:
    """Return the name of a list entry, if that much of it is readable."""
    for field in store.names:
        said = re.search(rf'"{re.escape(field)}"\s*:\s*"([^"\\]{{1,80}})"', piece)
        if said:
            return said[1]
    return None
