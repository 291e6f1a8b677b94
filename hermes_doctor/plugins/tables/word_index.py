"""Find which of many literals a text contains, by the words that they begin with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from hermes_doctor.lazy import pattern

WORD = "\b"
"""In front of a literal that begins a word."""
_LONG, _SHORT = 7, 4
"""This many letters at the start of a word of a literal are looked up in the words of a text."""
_WORDS = pattern(r"\w+")
_LATER_WORDS = pattern(r"(?<=\W)\w+")
T = TypeVar("T")


def word_starts(literal: str) -> list[str]:
    """Return what words that contain a literal begin with, for each of its words."""
    bare = literal.removeprefix(WORD)
    words = _LATER_WORDS.findall(bare if bare == literal else f" {bare}")
    fitting = [one for one in words if len(one) >= _SHORT or (one.isdigit() and len(one) == 3)]
    return [one[: _LONG if len(one) >= _LONG else _SHORT] for one in fitting]


class WordIndex(Generic[T]):
    """Values by literals in small letters."""

    def __init__(self, literals: Iterable[tuple[str, T]] = ()) -> None:
        self._starts: dict[str, list[tuple[str, T]]] = {}
        """By the first letters of the rarest word that surely begins there."""
        self.others: list[tuple[str, T]] = []
        """Literals without such a word, which are searched in every text."""
        self.foreign: list[tuple[str, T]] = []
        """The same for those that are not ASCII."""
        for literal, value in literals:
            self.add(literal, value)

    def add(self, literal: str, value: T) -> None:
        """Add a literal; `WORD` in front says that it begins a word."""
        bare = literal.removeprefix(WORD)
        if bare is not literal and bare[:_LONG].isalpha() and len(bare) >= _LONG:
            self._starts.setdefault(bare[:_LONG], []).append((bare, value))  # most are so
        elif starts := word_starts(literal):
            rare = min(starts, key=lambda one: (len(self._starts.get(one, ())), -len(one)))
            self._starts.setdefault(rare, []).append((bare, value))
        elif bare.isascii():
            self.others.append((bare, value))
        else:
            self.foreign.append((bare, value))

    def find(self, small: str, words: Iterable[str] = ()) -> list[tuple[str, T]]:
        """Return the literals that a text in small letters contains, with their values.

        The words of the text may be given, in any case, if they are known.
        """
        starts = {word[:_LONG].lower() for word in words or _WORDS.findall(small)}
        starts |= {one[:_SHORT] for one in starts}
        found = [one for one in self.others if one[0] in small]
        for start in starts & self._starts.keys():
            found += [one for one in self._starts[start] if one[0] in small]
        if not small.isascii():
            found += [one for one in self.foreign if one[0] in small]
        return found
