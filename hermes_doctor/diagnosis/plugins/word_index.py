"""Find which of many literals a text contains, by the words that they begin with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from hermes_doctor.core.lazy import pattern

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
    fitting = [word for word in words if len(word) >= _SHORT or (word.isdigit() and len(word) == 3)]
    return [one[: _LONG if len(one) >= _LONG else _SHORT] for one in fitting]


class WordIndex(Generic[T]):
    """Values by literals in small letters."""

    def __init__(self, literals: Iterable[tuple[str, T]] = ()) -> None:
        self.starts: dict[str, list[tuple[str, T]]] = {}
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
            self.starts.setdefault(bare[:_LONG], []).append((bare, value))  # most are so
        elif starts := word_starts(literal):
            rare = min(starts, key=lambda one: (len(self.starts.get(one, ())), -len(one)))
            self.starts.setdefault(rare, []).append((bare, value))
        elif bare.isascii():
            self.others.append((bare, value))
        else:
            self.foreign.append((bare, value))

    def packed(self) -> tuple[Any, ...]:
        """Return what JSON can store and `unpacked` takes."""
        return self.starts, self.others, self.foreign

    @classmethod
    def unpacked(
        cls,
        starts: dict[str, list[tuple[str, T]]],
        others: list[tuple[str, T]],
        foreign: list[tuple[str, T]],
    ) -> WordIndex[T]:
        """Rebuild an index; its values must be such that JSON keeps them as they are."""
        word_index: WordIndex[T] = cls()
        word_index.starts, word_index.others, word_index.foreign = starts, others, foreign
        return word_index

    def find(self, small: str, words: Iterable[str] = ()) -> list[tuple[str, T]]:
        """Return the literals that a text in small letters contains, with their values.

        The words of the text may be given, in any case, if they are known.
        """
        starts = {word[:_LONG].lower() for word in words or _WORDS.findall(small)}
        starts |= {one[:_SHORT] for one in starts}
        others = [other for other in self.others if other[0] in small]
        for start in sorted(starts & self.starts.keys()):
            others += [one for one in self.starts[start] if one[0] in small]
        if not small.isascii():
            others += [one for one in self.foreign if one[0] in small]
        return others
