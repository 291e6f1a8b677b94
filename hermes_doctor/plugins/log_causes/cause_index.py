"""Find the causes that a text names; a pattern is tried only if one of its literals is there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hermes_doctor.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.plugins.log_causes.cause import Cause, Signs
from hermes_doctor.plugins.log_causes.errno_table import ERRORS, SPELLINGS, names_of

_START = 4
"""This many letters at the start of a word of a literal are looked up in the words of a text."""
_WORD = pattern(r"\w+")
_LATER_WORD = pattern(r"(?<=[^\w])\w{4,}")
_NUMBER = pattern(
    r"(?:\[Errno |\[WinError |\[WSAError |\(os error |\berrno[=:] ?'?|\bsystem error: )"
    r"(?P<number>-?\d{1,5})\b(?!\] \[?_?ssl)"
    r"|\b(?:OSError|IOError|gaierror|socket\.error|(?:Permission|FileNotFound|FileExists|Timeout"
    r"|Connection\w{0,10}|BrokenPipe|BlockingIO|ClientOS)Error)\((?P<shown>-?\d{1,5}), ",
    re.IGNORECASE,
)
_AFTER_NAME = r"\b(?![\w.])(?:$|[:;,()'\">\]}]|\. ?$| [-–(]| in \b| at \b)"


class Found(NamedTuple):
    """A cause that a text names."""

    cause: Cause
    fields: Mapping[str, str]


class _Sign(NamedTuple):
    number: int
    """Of the cause; -1 if it only says which error of the system it is."""
    pattern: str
    """Empty if the literal is enough."""
    error: str = ""


class CauseIndex:
    """All causes, indexed by words of the texts that name them."""

    def __init__(self, causes: Iterable[tuple[Cause, Signs]]) -> None:
        self.causes: list[Cause] = []
        self.names: dict[str, int] = {}
        """The cause of each exception class."""
        self.errors: dict[str, int] = {}
        """The cause of each error of the system."""
        self.starts: dict[str, list[tuple[str, _Sign]]] = {}
        """Literals, by the start of one of their words."""
        self.others: list[tuple[str, _Sign]] = []
        """Literals without such a word, which are searched in every text."""
        self.tried = 0
        """How many patterns were tried so far."""
        for number, (cause, signs) in enumerate(causes):
            self.causes.append(cause)
            self.names |= dict.fromkeys(signs.exceptions, number)
            self.errors |= dict.fromkeys(signs.errors, number)
            for text, literals in signs.texts:
                sign = _Sign(number, text)
                for literal in literals:
                    self._add(literal, sign)
        for name, error in ERRORS.items():
            for literal in error.texts:
                self._add(literal, _Sign(self.errors.get(name, -1), "", name))
        self.codes = {name: name for name in ERRORS} | SPELLINGS

    def _add(self, literal: str, sign: _Sign) -> None:
        words = _LATER_WORD.findall(literal)
        if words:
            start = max(words, key=len)[:_START]
            self.starts.setdefault(start, []).append((literal, sign))
        else:
            self.others.append((literal, sign))

    def find(self, text: str) -> list[Found]:
        """Return the causes that a text names, those of exception classes last."""
        small = text.lower()
        words = {*_WORD.findall(text)}
        likely = [one for one in self.others if one[0] in small]
        for start in {word[:_START].lower() for word in words} & self.starts.keys():
            likely += [one for one in self.starts[start] if one[0] in small]
        found: list[Found] = []
        errors: set[str] = set()
        seen: set[_Sign] = set()
        for literal, sign in likely:
            if sign.error:
                place = small.find(literal)
                if not place or not small[place - 1].isalnum():
                    errors.add(sign.error)
            elif sign not in seen:
                seen.add(sign)
                self.tried += 1
                if match := _compiled(sign.pattern).search(text):
                    fields = {name: value for name, value in match.groupdict().items() if value}
                    found.append(Found(self.causes[sign.number], fields))
        named = errors or {*self._codes(text, words)}
        found += [Found(self.causes[self.errors[one]], EMPTY) for one in named & self.errors.keys()]
        for name in words & self.names.keys():
            self.tried += 1
            if _compiled(name + _AFTER_NAME).search(text):
                found.append(Found(self.causes[self.names[name]], EMPTY))
        return found

    def _codes(self, text: str, words: set[str]) -> Iterator[str]:
        """Yield the errors whose names or numbers a text has."""
        for word in words & self.codes.keys():
            yield self.codes[word]
        if "rro" not in text and "errno" not in text:
            return
        for match in _NUMBER.finditer(text):
            names = names_of(int(match["number"] or match["shown"]), "[win" in match[0].lower())
            wanted = [name for name in names if name in self.errors]
            yield from wanted[:1]


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(source: str) -> re.Pattern[str]:
    """Return the compiled pattern; the cache of `re` is too small for all of them."""
    found = _patterns.get(source)
    if found is None:
        found = _patterns[source] = re.compile(source, re.MULTILINE)
    return found
