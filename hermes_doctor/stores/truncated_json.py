"""Find the complete part of JSON that is cut off, and close it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

from hermes_doctor.lazy import NamedTuple

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
