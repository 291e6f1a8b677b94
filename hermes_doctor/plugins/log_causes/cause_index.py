"""Find the causes that a text names; a pattern is tried only if one of its literals is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermes_doctor.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.plugins.log_causes.cause import Cause, Signs
from hermes_doctor.plugins.log_causes.errno_table import ERRORS, SPELLINGS, names_of
from hermes_doctor.plugins.tables.word_index import WordIndex

SAYS_LITTLE = 80
"""Causes from this rank on are named by words that say little, such as `timed out`."""
_WORD = pattern(r"\w+")
_NUMBER = pattern(
    r"(?:\[Errno |\[WinError |\[WSAError |\(os error |\berrno[=:] ?'?|\bsystem error: )"
    r"(?P<number>-?\d{1,5})\b(?!\] \[?_?ssl)"
    r"|\b(?:OSError|IOError|gaierror|socket\.error|(?:Permission|FileNotFound|FileExists|Timeout"
    r"|Connection\w{0,10}|BrokenPipe|BlockingIO|ClientOS)Error)\((?P<shown>-?\d{1,5}), ",
    re.IGNORECASE,
)
_NUMBERED = ("errno", "winerror", "wsaerror", "os error ", "system error", "error(", "gaierror(")
_AFTER_NAME = r"\b(?![\w.])(?:$|[:;,()'\">\]}]|\. ?$| [-–(]| in \b| at \b)"


class Found(NamedTuple):
    """A cause that a text names."""

    cause: Cause
    fields: Mapping[str, str]
    end: int = 0
    """Where in the text the words of the cause end."""


class _Sign(NamedTuple):
    key: int
    """Different for each pattern."""
    number: int
    """Of the cause; -1 if it only says which error of the system it is."""
    pattern: str
    """Empty if the literal is enough."""
    error: str = ""
    also: Sequence[Sequence[str]] = ()
    """Other sets of literals, of each of which one is in every match."""


class CauseIndex:
    """All causes, indexed by words of the texts that name them."""

    def __init__(self, causes: Iterable[tuple[Cause, Signs]]) -> None:
        self.causes: list[Cause] = []
        self.names: dict[str, int] = {}
        """The cause of each exception class."""
        self.errors: dict[str, int] = {}
        """The cause of each error of the system."""
        self.literals: WordIndex[_Sign] = WordIndex()
        self._signs = 0
        self.tried = 0
        """How many patterns were tried so far."""
        for number, (cause, signs) in enumerate(causes):
            self.causes.append(cause)
            self.names |= dict.fromkeys(signs.exceptions, number)
            self.errors |= dict.fromkeys(signs.errors, number)
            for text, literals in signs.texts:
                self._signs += 1
                sign = _Sign(self._signs, number, text, "", literals[1:])
                for literal in literals[0]:
                    self.literals.add(literal, sign)
        for name, error in ERRORS.items():
            for literal in error.texts:
                self.literals.add(literal, _Sign(0, self.errors.get(name, -1), "", name))
        self.codes = {name: name for name in ERRORS} | SPELLINGS

    def find(self, text: str) -> list[Found]:
        """Return the causes that a text names; by the classes of exceptions if the words do not."""
        words = {*_WORD.findall(text)}
        found = self._by_words(text, words)
        # The words of an error say more than the name of its class before them.
        start = max((one.end for one in found if one.cause.rank < SAYS_LITTLE), default=0)
        for name in words & self.names.keys():
            self.tried += 1
            match = _compiled(name + _AFTER_NAME).search(text)
            if match and match.end() > start:
                found.append(Found(self.causes[self.names[name]], EMPTY, match.end()))
        return found

    def _by_words(self, text: str, words: set[str]) -> list[Found]:
        """Return the causes that patterns find, and errors of the system."""
        small = text.lower()
        found: list[Found] = []
        errors: dict[str, int] = {}
        seen: set[int] = set()
        for literal, sign in self.literals.find(small, words):
            if sign.error:
                place = small.find(literal)
                if not place or not small[place - 1].isalnum():
                    errors[sign.error] = place + len(literal)
            elif sign.key not in seen:
                seen.add(sign.key)
                if match := self._search(sign, text, small):
                    fields = {name: value for name, value in match.groupdict().items() if value}
                    found.append(Found(self.causes[sign.number], fields, match.end()))
        for name, end in (errors or dict(self._codes(text, small, words))).items():
            if name in self.errors:
                found.append(Found(self.causes[self.errors[name]], EMPTY, end))
        return found

    def _search(self, sign: _Sign, text: str, small: str) -> re.Match[str] | None:
        """Search a pattern if its other literals are there, too."""
        for literals in sign.also:
            if not any(one in small for one in literals):
                return None
        self.tried += 1
        return _compiled(sign.pattern).search(text)

    def _codes(self, text: str, small: str, words: set[str]) -> Iterator[tuple[str, int]]:
        """Yield the errors whose names or numbers a text has, and where."""
        for word in words & self.codes.keys():
            yield self.codes[word], text.find(word) + len(word)
        if not any(one in small for one in _NUMBERED):
            return
        for match in _NUMBER.finditer(text):
            names = names_of(int(match["number"] or match["shown"]), "[win" in match[0].lower())
            if wanted := next((name for name in names if name in self.errors), None):
                yield wanted, match.end()


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(source: str) -> re.Pattern[str]:
    """Return the compiled pattern; the cache of `re` is too small for all of them."""
    found = _patterns.get(source)
    if found is None:
        found = _patterns[source] = re.compile(source, re.MULTILINE)
    return found
