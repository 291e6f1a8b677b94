"""Find out which part of the bot a log line is about, from its logger and its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hermes_doctor.core.lazy import NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.log_causes.place import MOST_LOGGERS, WORK, Place, PlaceRow

NAMED_WITHIN = 240
"""A line names its place among its first characters; later ones may be words of people."""
BEGINS_WITHIN = 80
"""A line about another place than a platform says so at its beginning."""
MOST_PATTERNS = 200
"""Patterns for the words of different texts that are kept."""
OF_KIND = {"update": "hermes_cli.update", "exit-diary": "gateway"}
"""The logger that stands for a source without loggers."""
SHORT_VALUE = r"['\"]?(?P<%s>[\w./:@-]{1,80})['\"]?"
_FIELDS = tuple(
    (name, hint, pattern(rf"\b{before}" + SHORT_VALUE % name))
    for name, hint, before in (
        ("provider", "rovider", r"provider[=:] ?"),
        ("model", "odel", r"model[=:] ?"),
        ("tool", "ool", r"(?:[Tt]ool |tool[=:] ?)"),
        ("job", "ob", r"(?:[Jj]ob |job_id[=:] ?)"),
        ("task", "ask", r"(?:[Tt]ask |task_id[=:] ?)"),
        ("server", "MCP", r"MCP server "),
        ("plugin", "lugin", r"(?:[Pp]lugin |plugin[=:] ?)"),
        ("profile", "rofile", r"(?:[Pp]rofile |profile[=:] ?)"),
    )
)
"""The names of things that a line is about, where Hermes writes them in these ways, and a part of
the words before them that is searched first.
"""
_ID = re.compile(r"(?=.*[\d_./:@-])[\w./:@-]+")
"""A name, not a word of a sentence such as `failed`."""


class Found(NamedTuple):
    """A place and what it usually does."""

    place: Place | None
    operation: str = WORK


class PlaceReader:
    """Finds the place of a line; what a logger says alone is remembered."""

    def __init__(self, rows: Sequence[PlaceRow]) -> None:
        self._rows = rows
        self._prefixes = {name: row for row in rows for name in row.loggers if name}
        self._unnamed = next((row for row in rows if "" in row.loggers), None)
        """The place of a line whose source does not say who wrote it."""
        self._known: dict[str, PlaceRow | None] = {}
        platforms = [row for row in rows if row.part == "platform"]
        others = [row for row in rows if row.part != "platform"]
        self._words = (NAMED_WITHIN, _Words(platforms)), (BEGINS_WITHIN, _Words(others))
        """Names of platforms, then of others: a line about both is about the platform."""

    def read(self, logger: str, text: str, kind: str = "log") -> Found:
        """Return the place of a line and its usual operation."""
        name = logger or OF_KIND.get(kind, "")
        try:
            row = self._known[name]
        except KeyError:
            row = self.of_logger(name)
            if len(self._known) < MOST_LOGGERS:
                self._known[name] = row
        if row is None or row.shared:
            row = self._named(text) or row
        return Found(row.place, row.operation) if row else Found(None)

    def named(self, name: str) -> Place | None:
        """Return the place of this name."""
        return next((row.place for row in self._rows if row.name == name), None)

    def of_logger(self, name: str) -> PlaceRow | None:
        """Return the place of the longest name that a logger is, or goes on after."""
        if not name:
            return self._unnamed
        end = len(name)
        while end > 0:
            if row := self._prefixes.get(name[:end]):
                return row
            end = max(name.rfind(".", 0, end), name.rfind("_", 0, end))
        return None

    def _named(self, text: str) -> PlaceRow | None:
        for within, words in self._words:
            if row := words.find(text[:within]):
                return row
        return None


class _Words:
    """The words of places; a pattern has only those that a text contains, which are few or none."""

    def __init__(self, rows: Iterable[PlaceRow]) -> None:
        self._rows = {word.lower(): row for row in rows for word in row.words}
        self._patterns: dict[tuple[str, ...], re.Pattern[str]] = {}

    def find(self, text: str) -> PlaceRow | None:
        """Return the first place that a text names."""
        small = text.lower()
        likely = tuple(word for word in self._rows if word in small)
        if not likely:
            return None
        found = self._patterns.get(likely)
        if found is None:
            if len(self._patterns) >= MOST_PATTERNS:
                self._patterns.clear()
            found = self._patterns[likely] = self._pattern(likely)
        match = found.search(text)
        return self._rows[match[match.lastgroup or 0].lower()] if match else None

    def _pattern(self, words: Iterable[str]) -> re.Pattern[str]:
        longest = sorted(words, key=len, reverse=True)
        plain = "|".join(re.escape(word) for word in longest if not self._rows[word].common)
        common = "|".join(re.escape(word) for word in longest if self._rows[word].common)
        ways = []
        if plain:
            ways.append(rf"(?<![\w/@.:])(?P<plain>{plain})(?![\w@]|[.]\w)")
        if common:
            ways += [
                rf"\[(?P<tag>{common})[\]:]",
                rf"(?:platform[=: ]['\"]?|[✓✗] )(?P<before>{common})\b",
                r"\b(?:Reconnect|Fatal|Secondary|Skipping|reconnecting|disconnecting|configure) "
                rf"(?P<verb>{common})\b",
                rf"\b(?P<adapter>{common})(?= (?:adapter|reconnect))",
                rf"^(?P<start>{common})(?=: | (?:paused|resumed|queued|has been|failed|connected))",
                rf"\b(?:for|to|on) (?P<for>{common})(?=:| via\b|/)",
            ]
        return re.compile("(?i)" + "|".join(ways))


def fields_of(text: str) -> dict[str, str]:
    """Return the names of the things that a line is about, such as its job or its model."""
    start = text[:NAMED_WITHIN]
    found = {}
    for name, hint, way in _FIELDS:
        match = way.search(start) if hint in start else None
        if match and _is_name(match[0], match[name]):
            found[name] = match[name].rstrip(".:,")
    return found


def _is_name(whole: str, value: str) -> bool:
    """Tell whether a value is a name, not the next word of a sentence."""
    return whole.endswith(("'", '"')) or "=" in whole or bool(_ID.fullmatch(value))
