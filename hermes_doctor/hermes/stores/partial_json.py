"""Keep what is readable of damaged JSON: close it where it is cut off, or extract its entries.

Hermes indents every store by two spaces per level, so an entry starts on a line of its own, and no
text inside an entry can contain such a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.hermes.stores.catalogue import LIST, Store

Path = tuple[str | int, ...]
_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder(strict=False)
_CLOSERS = {"{": "}", "[": "]"}
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_ESCAPE = 6


class TruncatedText(NamedTuple):
    """The complete part of a text that is cut off."""

    text: str
    """The complete part with its brackets closed."""
    lost: Path
    """The path of the value that is cut off; empty if only brackets are missing."""
    rest: str
    """What is left of that value."""


class _BrokenOff(Exception):
    """The end of the text was reached."""


class _Scan:
    """Scans down to the entries and remembers the last position where everything was complete."""

    def __init__(self, text: str, containers: Sequence[Path]) -> None:
        self.text = text
        self.walked = {path[:depth] for path in containers for depth in range(len(path) + 1)}
        self.open: list[str] = []
        self.good: tuple[int, str] | None = None
        self.lost: Path = ()
        self.began = len(text)

    def value(self, at: int, path: Path) -> int:
        """Return the end of the value that starts here."""
        self.lost, self.began = path, at
        if path in self.walked and self._char(at) in _CLOSERS:
            return self._container(at, path)
        try:
            return _DECODER.raw_decode(self.text, at)[1]
        except json.JSONDecodeError as error:
            raise self._ended(error) from None

    def _container(self, at: int, path: Path) -> int:
        opened = self.text[at]
        closer = _CLOSERS[opened]
        self.open.append(closer)
        self._mark(at + 1)
        at = self.skip(at + 1)
        number = 0
        while self._char(at) != closer:
            key: str | int = number
            if opened == "{":
                key, at = self._key(at)
            at = self.value(at, (*path, key))
            self._mark(at)
            number += 1
            at = self.skip(at)
            if self._char(at) == ",":
                at = self.skip(at + 1)
            elif self._char(at) != closer:
                raise ValueError("no comma")
        self.open.pop()
        return at + 1

    def _key(self, at: int) -> tuple[str, int]:
        self.lost, self.began = (), at
        if self._char(at) != '"':
            raise ValueError("no name")
        try:
            key, at = scanstring(self.text, at + 1, False)
        except json.JSONDecodeError as error:
            raise self._ended(error) from None
        at = self.skip(at)
        if self._char(at) != ":":
            raise ValueError("no colon")
        return key, self.skip(at + 1)

    def _mark(self, at: int) -> None:
        self.good = (at, "".join(reversed(self.open)))
        self.lost, self.began = (), at

    def skip(self, at: int) -> int:
        """Return the next position that is not blank."""
        while at < len(self.text) and self.text[at] in _BLANKS:
            at += 1
        return at

    def _char(self, at: int) -> str:
        if at >= len(self.text):
            raise _BrokenOff
        return self.text[at]

    def _ended(self, error: json.JSONDecodeError) -> Exception:
        """Decide whether the text is cut off or damaged in the middle.

        The parser reports a text, word or escape that is cut off at its start.
        """
        rest = self.text[error.pos :]
        ended = error.msg.startswith("Unterminated") or any(w.startswith(rest) for w in _WORDS)
        ended = ended or ("escape" in error.msg and len(rest) <= _ESCAPE)
        return _BrokenOff() if ended else ValueError("broken in the middle")


def close_truncated(text: str, containers: Sequence[Path]) -> TruncatedText | None:
    """Return the complete part of a text that is cut off; None if it is damaged otherwise."""
    text = text.rstrip(_BLANKS)
    scan = _Scan(text, containers)
    try:
        scan.value(scan.skip(0), ())
    except _BrokenOff:
        pass
    except (ValueError, RecursionError):
        return None
    else:
        return None  # it is complete
    if scan.good is None:
        return None
    at, closers = scan.good
    return TruncatedText(f"{text[:at]}\n{closers}\n", scan.lost, text[scan.began :])


REPLACED = "\ufffd"
"""Replaces bytes that are not valid UTF-8."""
_STRICT_DECODER = json.JSONDecoder()
_KEY = r'"((?:[^"\\\n]|\\.){0,500})": ?'


class SalvagedEntries(NamedTuple):
    """The readable entries of a damaged text."""

    values: Any
    lost: tuple[str, ...]
    """The entries that start there and cannot be read."""


def salvage_entries(text: str, store: Store) -> SalvagedEntries:
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
            value, end = _STRICT_DECODER.raw_decode(piece)
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
        match = re.search(rf'"{re.escape(field)}"\s*:\s*"([^"\\]{{1,80}})"', piece)
        if match:
            return match[1]
    return None
