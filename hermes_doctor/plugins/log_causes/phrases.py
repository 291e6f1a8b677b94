"""Find out from the words of a line what was tried, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes_doctor.lazy import pattern
from hermes_doctor.plugins.log_causes.place import WORK, Phrases

_OWN = pattern(r"(?:\W{0,4}\[[^\]]{0,60}\]:? ?){0,2}[^:'\"({\[=<]{0,100}")


def own_words(text: str) -> str:
    """Return the first words of a line, which are Hermes' own: no value and no error is in them."""
    match = _OWN.match(text)
    return match[0].rstrip(" -—,") if match else ""


class OperationReader:
    """Finds the operation that the first fitting words of a line name."""

    def __init__(self, rows: Sequence[Phrases]) -> None:
        self._rows = rows
        self._pattern: re.Pattern[str] | None = None

    def read(self, words: str, usual: str = WORK) -> str:
        """Return the operation of a line; the usual one if its words name none."""
        if self._pattern is None:
            ways = [
                f"(?P<o{number}>{'|'.join(row.phrases)})" for number, row in enumerate(self._rows)
            ]
            self._pattern = re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(ways)})" if ways else "(?!)")
        match = self._pattern.search(words)
        return self._rows[int((match.lastgroup or "o0")[1:])].name if match else usual


class OutcomeReader:
    """Finds how something ended; of several outcomes, the one that the table lists first."""

    def __init__(self, rows: Sequence[Phrases]) -> None:
        self._rows = rows
        self._patterns: list[tuple[str, re.Pattern[str]]] = []

    def read(self, text: str) -> str:
        """Return the outcome that a line names, or an empty text."""
        if not self._patterns:
            self._patterns = [
                (row.name, re.compile(rf"(?i)(?<![^\W_])(?:{'|'.join(row.phrases)})"))
                for row in self._rows
            ]
        return next((name for name, way in self._patterns if way.search(text)), "")
