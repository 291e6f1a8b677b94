"""Find out from the words of a line what was tried, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hermes_doctor.core.lazy import pattern
from hermes_doctor.diagnosis.plugins.log_causes.place import WORK, Phrases
from hermes_doctor.diagnosis.plugins.word_index import WORD

MOST_KNOWN = 2000
"""Operations of first words that are remembered: a release has about as many."""
WITHIN = 200
"""An operation is named among this many first characters."""
OUTCOME_WITHIN = 400
"""An outcome is named among this many first characters."""
_OWN = pattern(r"(?:\W{0,4}\[[^\]]{0,60}\]:? ?){0,2}[^:'\"({\[=<]{0,100}")
_VALUE = pattern(r"'[^']{0,80}' ?|\"[^\"]{0,80}\" ?|\([^()]{0,80}\) ?")
"""What stands in quotes or brackets is the name of something or words of people."""
_NAME = pattern(
    r" (?:by|user|guild|member|sender|contact|named) \S"
    r"|(?<=\w) (?:to|for|from|of|in|on|at|with|channel|chat|group|document) [^a-z\s]"
    r"|(?<= )\S*[/\\@]"
)
"""Where the name of somebody or something may begin that has no quotes around it."""
_LABEL = pattern(r"\W{0,4}[\w.-]{1,24}(?: [\w.-]{1,16})?: ")
"""What some lines begin with instead of a tag, such as `Matrix: `."""


def own_words(text: str) -> str:
    """Return the first words of a line, which are Hermes' own: no error and no name is in them."""
    words = _first_words(text)
    name = _NAME.search(words)
    return words[: name.start()].rstrip() if name else words


def _first_words(text: str) -> str:
    match = _OWN.match(text)
    return match[0].rstrip(" -—,") if match else ""


class OperationReader:
    """Finds the operation that the first fitting words of a line name."""

    def __init__(self, rows: Sequence[Phrases]) -> None:
        self._phrases = _Phrases(rows)
        self._known: dict[str, str] = {}

    def read(self, text: str, usual: str = WORK) -> str:
        """Return the operation of a line; the usual one if its words name none."""
        start = text[:WITHIN]
        if any(sign in start for sign in "'\"(_"):
            start = _VALUE.sub("", start).replace("_", " ")
        found = self._of_words(_first_words(start))
        if not found and (label := _LABEL.match(start)):
            found = self._of_words(_first_words(start[label.end() :]))
        return found or usual

    def _of_words(self, words: str) -> str:
        known = self._known.get(words)
        if known is None:
            found = min(self._phrases.find(words), default=None)
            known = self._phrases.names[found[1]] if found else ""
            if len(self._known) < MOST_KNOWN:
                self._known[words] = known
        return known


class OutcomeReader:
    """Finds how something ended; of several outcomes, the one that the table lists first."""

    def __init__(self, rows: Sequence[Phrases]) -> None:
        self._phrases = _Phrases(rows)

    def read(self, text: str) -> str:
        """Return the outcome that a line names, or an empty text."""
        found = next(self._phrases.find(text[:OUTCOME_WITHIN]), None)
        return self._phrases.names[found[1]] if found else ""


class _Phrases:
    """Phrases in their order; one is tried only if a text has one of its literals."""

    def __init__(self, rows: Sequence[Phrases]) -> None:
        self.names = [row.name for row in rows]
        self._phrases = [(number, one) for number, row in enumerate(rows) for one, _ in row.phrases]
        self._always: list[int] = []
        """Phrases without a literal."""
        self._literals: dict[str, list[int]] = {}
        for place, (_, literals) in enumerate(phrase for row in rows for phrase in row.phrases):
            for literal in literals:
                self._literals.setdefault(literal.removeprefix(WORD), []).append(place)
            if not literals:
                self._always.append(place)
        self._patterns: dict[str, re.Pattern[str]] = {}

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a phrase begins in a text, and the number of its row."""
        small = text.lower()
        likely = [places for literal, places in self._literals.items() if literal in small]
        for place in sorted({*self._always}.union(*likely)):
            number, phrase = self._phrases[place]
            pattern = self._patterns.get(phrase)
            if pattern is None:
                whole = rf"(?i)(?<![^\W_])(?:{phrase})"
                pattern = self._patterns[phrase] = re.compile(whole)
            if match := pattern.search(text):
                yield match.start(), number
