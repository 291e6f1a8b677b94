"""The causes of failures, and how those that a text names are found.

A pattern is tried only if one of its literals is in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hermes_doctor.core.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.word_index import WordIndex

FAMILIES = (
    "machine", "network", "remote", "login", "data", "code", "time", "limits", "settings",
)  # fmt: skip
FIELDS = (
    "host", "port", "path", "module", "status", "code", "seconds", "name", "program", "column",
    "table", "value", "count", "line", "model",
)  # fmt: skip
"""The group names that the pattern of a cause may use."""
LONGEST_TITLE = 48


class Cause(NamedTuple):
    """A reason of failures; any part of the bot may report it."""

    name: str
    family: str
    rank: int
    """Of several causes in an entry, the one with the lowest rank is to blame."""
    code: str
    codes: Sequence[str] = ()
    """Other codes of findings that say the same cause."""
    by_part: Mapping[str, str] = EMPTY
    """Part of the bot → code, where it is not `code`."""
    title: str = ""
    """A fragment with {fields}; a form for unknown fields follows ` | `."""
    detail: str = ""
    advice: str = ""
    """One sentence that says what to do."""
    transient: bool = False
    """Whether it may pass without anybody doing something."""
    severity: str = ""
    """How bad it is at least, whatever part of Hermes it stops; empty if the place decides."""
    lines: int = 1
    """How many lines it takes for that severity."""
    unless_ok: Sequence[str] = ()
    """Checks that examine the thing itself: if one finds no problem, the lines are history."""
    fix: str = ""
    by_platform: Mapping[str, str] = EMPTY
    """Id of a platform → code that says more than the code of its part."""

    def code_in(self, part: str, platform: str = "") -> str:
        """Return the code of findings about this cause in a part of the bot, or on a platform."""
        return self.by_platform.get(platform) or self.by_part.get(part, self.code)

    @property
    def all_codes(self) -> set[str]:
        """All codes that say this cause."""
        others = (*self.codes, *self.by_part.values(), *self.by_platform.values())
        return {self.code, *others}

    def means(self, code: str) -> bool:
        """Tell whether a finding with this code says the same cause."""
        return code in self.all_codes

    def title_with(self, fields: Mapping[str, str]) -> str:
        """Return the title; without its fields if one is not known or makes it too long."""
        full, _, plain = self.title.partition(" | ")
        try:
            filled = full.format_map(fields)
        except KeyError:
            return plain
        return filled if len(filled) <= LONGEST_TITLE or not plain else plain


class Signs(NamedTuple):
    """How texts that name a cause are recognised."""

    errors: Sequence[str] = ()
    """Names of errors of operating systems, such as EADDRINUSE."""
    exceptions: Sequence[str] = ()
    """Names of exception classes."""
    texts: Sequence[tuple[str, Sequence[Sequence[str]]]] = ()
    """Patterns, each with sets of literals in small letters; every match has one of each set."""


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


class Sign(NamedTuple):
    """A pattern for texts that name a cause."""

    cause: int
    """The number of the cause."""
    pattern: str
    also: Sequence[Sequence[str]] = ()
    """Sets of literals beside those in the index: every match contains one of each set."""


class CauseIndex:
    """All causes, indexed by words of the texts that name them."""

    def __init__(
        self,
        causes: Sequence[Cause] = (),
        signs: Sequence[Sign] = (),
        words: WordIndex[int | str] | None = None,
        names: Mapping[str, int] = EMPTY,
        errors: Mapping[str, int] = EMPTY,
        codes: Mapping[str, str] = EMPTY,
    ) -> None:
        """`words`: the number of a sign, or the name of an error of the system, by literal.

        `names` and `errors`: the numbers of causes by exception class and by error of the system;
        `codes`: the error by each spelling of its name.
        """
        self.causes = causes
        self.signs = signs
        self.words: WordIndex[int | str] = words or WordIndex()
        self.names = names
        self.errors = errors
        self.codes = codes
        self.tried = 0
        """How many patterns were tried so far."""

    def find(self, text: str) -> list[Found]:
        """Return the causes that a text names; by the classes of exceptions if the words do not."""
        words = {*_WORD.findall(text)}
        found = self._by_words(text, words)
        # The words of an error say more than the name of its class before them.
        start = max((one.end for one in found if one.cause.rank < SAYS_LITTLE), default=0)
        for name in sorted(words & self.names.keys()):
            self.tried += 1
            match = _compiled(name + _AFTER_NAME).search(text)
            if match and match.end() > start:
                found.append(Found(self.causes[self.names[name]], EMPTY, match.end()))
        return found

    def _by_words(self, text: str, words: set[str]) -> list[Found]:
        """Return the causes that patterns find, and errors of the system."""
        small = text.lower()
        founds: list[Found] = []
        errors: dict[str, int] = {}
        seen: set[int] = set()
        for literal, value in self.words.find(small, words):
            if isinstance(value, str):
                place = small.find(literal)
                if not place or not small[place - 1].isalnum():
                    errors[value] = place + len(literal)
            elif value not in seen:
                seen.add(value)
                sign = self.signs[value]
                if match := self._search(sign, text, small):
                    fields = {name: value for name, value in match.groupdict().items() if value}
                    founds.append(Found(self.causes[sign.cause], fields, match.end()))
        for name, end in (errors or dict(self._codes(text, small, words))).items():
            if name in self.errors:
                founds.append(Found(self.causes[self.errors[name]], EMPTY, end))
        return founds

    def _search(self, sign: Sign, text: str, small: str) -> re.Match[str] | None:
        """Search a pattern if its other literals are there, too."""
        for literals in sign.also:
            if not any(literal in small for literal in literals):
                return None
        self.tried += 1
        return _compiled(sign.pattern).search(text)

    def _codes(self, text: str, small: str, words: set[str]) -> Iterator[tuple[str, int]]:
        """Yield the errors whose names or numbers a text has, and where."""
        for word in sorted(words & self.codes.keys()):
            yield self.codes[word], text.find(word) + len(word)
        if not any(one in small for one in _NUMBERED):
            return
        from hermes_doctor.diagnosis.plugins.log_causes.errno_table import names_of

        for match in _NUMBER.finditer(text):
            names = names_of(int(match["number"] or match["shown"]), "[win" in match[0].lower())
            if wanted := next((name for name in names if name in self.errors), None):
                yield wanted, match.end()


def index_of(causes: Iterable[tuple[Cause, Signs]]) -> CauseIndex:
    """Index causes."""
    from hermes_doctor.diagnosis.plugins.log_causes.errno_table import ERRORS, SPELLINGS

    known: list[Cause] = []
    found: list[Sign] = []
    words: WordIndex[int | str] = WordIndex()
    names: dict[str, int] = {}
    errors: dict[str, int] = {}
    for number, (cause, signs) in enumerate(causes):
        known.append(cause)
        names |= dict.fromkeys(signs.exceptions, number)
        errors |= dict.fromkeys(signs.errors, number)
        for text, literals in signs.texts:
            for literal in literals[0]:
                words.add(literal, len(found))
            found.append(Sign(number, text, literals[1:]))
    for name, error in ERRORS.items():
        for literal in error.texts:
            words.add(literal, name)
    return CauseIndex(known, found, words, names, errors, {n: n for n in ERRORS} | SPELLINGS)


_patterns: dict[str, re.Pattern[str]] = {}


def _compiled(source: str) -> re.Pattern[str]:
    """Return the compiled pattern; the cache of `re` is too small for all of them."""
    found = _patterns.get(source)
    if found is None:
        found = _patterns[source] = re.compile(source, re.MULTILINE)
    return found
