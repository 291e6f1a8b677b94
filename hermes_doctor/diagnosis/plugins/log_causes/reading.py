"""Read a log entry into place, operation, cause and outcome; recognise what works again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import EMPTY, NamedTuple, pattern
from hermes_doctor.diagnosis.plugins.log_causes.cause_index import Cause as Cause, CauseIndex, Found
from hermes_doctor.diagnosis.plugins.log_causes.place import (
    MOST_LOGGERS,
    Place as Place,
    SuccessRow,
)
from hermes_doctor.diagnosis.plugins.log_causes.tables import Tables
from hermes_doctor.hermes.logs.entry import LogEntry

if TYPE_CHECKING:
    from hermes_doctor.diagnosis.plugins.log_causes.phrases import OperationReader, OutcomeReader
    from hermes_doctor.diagnosis.plugins.log_causes.place_reader import PlaceReader


class Success(NamedTuple):
    """Something that works again."""

    place: Place
    operations: Sequence[str]
    """What works; empty if all that the place does."""


class SuccessReader:
    """Finds what a line shows to work."""

    def __init__(self, rows: Sequence[SuccessRow], places: Callable[[], PlaceReader]) -> None:
        """`places` is called when a line shows that something works."""
        self._rows = rows
        self._places = places
        self._patterns: dict[int, re.Pattern[str]] = {}
        self._known: dict[tuple[str, str], list[tuple[int, SuccessRow]]] = {}
        """The rows that entries of a level and a logger can match."""

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger could show that something works."""
        return bool(self._rows_for(level, logger))

    def read(self, entry: LogEntry) -> tuple[Success, ...]:
        """Return what works again, as an entry shows."""
        successes = []
        for number, row in self._rows_for(entry.level, entry.logger):
            if row.literals and not any(literal in entry.text for literal in row.literals):
                continue
            pattern = self._patterns.get(number)
            if pattern is None:
                pattern = self._patterns[number] = re.compile(row.pattern)
            if match := pattern.search(entry.text):
                place = self._place(entry, row, match)
                if place:
                    successes.append(Success(place, row.operations))
        return tuple(successes)

    def _rows_for(self, level: str, logger: str) -> list[tuple[int, SuccessRow]]:
        rows = self._known.get((level, logger))
        if rows is None:
            rows = [
                (number, row)
                for number, row in enumerate(self._rows)
                if row.level == level
                and (not row.loggers or any(_is_below(logger, name) for name in row.loggers))
            ]
            if len(self._known) < MOST_LOGGERS:
                self._known[level, logger] = rows
        return rows

    def _place(self, entry: LogEntry, row: SuccessRow, match: re.Match[str]) -> Place | None:
        if platform := match.groupdict().get("platform"):
            return self._places().named(platform.lower())
        if row.place:
            return self._places().named(row.place)
        return self._places().read(entry.logger, entry.text, entry.kind).place


def _is_below(logger: str, name: str) -> bool:
    """Tell whether a logger has a name, or goes on after it."""
    return logger == name or (logger.startswith(name) and logger[len(name)] in "._")


MOST = 2000
"""Characters of one text that are read."""
MOST_LINES, MOST_EXCEPTIONS = 10, 20
TRACEBACK = "Traceback (most recent call last):"
_MARGIN = pattern(r"^ {0,12}\| ?")
_FUNCTION = pattern(r", in (.{1,80})")
_BETWEEN = pattern(
    r"(?:\+ )?(?:Exception Group )?Traceback \(|During handling of the above exception"
    r"|The above exception was the direct cause|\[Previous line repeated"
)
_WRAPPERS = (", in map_exceptions", ", in map_httpcore_exceptions", ", in __exit__")
"""Functions that only turn one exception into another."""
_OTHERS = pattern(
    r"(?:\[[^\]]{0,60}\] )?(?:Tool [\w.-]{1,80} returned error|inbound message|response ready"
    r"|Unauthorized (?:user|sender)|Dropp(?:ed|ing) |Ignor(?:ed|ing) (?:message|\w+ from)"
    r"|Denied |Blocked (?:dangerous|command)|Model declined|shell hook stdout"
    r"|Reasoning-only response|Auto voice reply: |Unrecognized slash command"
    r"|Suppressing hidden-reasoning)"
)
"""The starts of lines whose rest was written by people, tools or models."""
_SAID = pattern(
    r"\b(?:msg|text|prompt|query|input|preview|payload|user_message|command|[Dd]escription)"
    r"(?:=|: )(?:'(?:[^'\\]|\\.){0,1500}'?|\"(?:[^\"\\]|\\.){0,1500}\"?)"
)
"""What somebody said, in quotes after a name for it."""
_NAME = pattern(r"\b([Jj]ob|[Tt]ask|[Ss]kill|[Bb]oard|[Cc]hat|[Tt]itle|[Pp]rofile) '[^'\n]{0,200}'")
"""What people called something."""
_TAG = pattern(r"(?:\W{0,4}\[(?!Errno|WinError|SSL)[^\]]{0,80}\]:? ?){0,3}")
_NAMED = pattern(r"\b[\w.]{0,80}[a-z](?:Error|Exception|Timeout)[:(]")
_ALONE = pattern(
    r"(?:\w{1,40}\.){1,5}[A-Z]\w{2,60}: "
    r"|[A-Z]\w{0,60}(?:Error|Exception|Timeout|TimedOut|Closed|ClosedError|ClosedOK|File|Failure): "
)
"""A name such as `telegram.error.TimedOut: `."""
_ERROR_WORD = pattern(r"\b[Ee]rror: ")
_ERROR_NUMBER = pattern(
    r"\[(?:Errno|WinError|SSL)\b|\bHTTP [45]\d\d\b|[Ww]eb ?[Ss]ocket closed\b|\([45]\d\d\)"
)
"""What says more before the colon than the words behind it."""


class Parts(NamedTuple):
    """The texts of an entry that can name a cause, from the innermost to the outermost."""

    exceptions: Sequence[str]
    """The exceptions of the traceback, each with the function that raised it; first the root."""
    message: str
    """The whole message, without words of people and models."""
    start: int
    """Where the error begins in the message."""


def parts_of(text: str, more: Sequence[str] = ()) -> Parts:
    """Split an entry; a message of people, tools or models gives nothing."""
    exceptions: list[str] = []
    message = text[: 2 * MOST]
    if more:
        start = next((n for n, line in enumerate(more) if TRACEBACK in line), len(more))
        message = "\n".join((message, *more[: min(start, MOST_LINES)]))
        exceptions = [*_exceptions(more[start:])]
    if _OTHERS.match(message):
        return Parts(exceptions, "", 0)
    if '="' in message or "='" in message or ": '" in message or ': "' in message:
        message = _SAID.sub("", message)
    if " '" in message:
        message = _NAME.sub(r"\1", message)
    message = message[:MOST]
    return Parts(exceptions, message, _error_start(message))


def _error_start(message: str) -> int:
    """Return where the error begins.

    That is behind the first colon, unless a number of it is before; or at the first exception.
    """
    tag = _TAG.match(message)
    start = tag.end() if tag else 0
    colon = message.find(": ", start)
    if colon < 0:
        return len(message)
    if _ERROR_NUMBER.search(message, start, colon) or _ALONE.match(message, start):
        return start
    if "(Caused by " in message[start:colon]:
        return start
    inner = [match.end() for match in _ERROR_WORD.finditer(message, colon)]
    named = _NAMED.search(message, start)
    return named.start() if named else max([colon + 2, *inner])


def _exceptions(lines: Sequence[str]) -> Iterator[str]:
    """Yield each exception of a traceback in one line, with the innermost function behind it."""
    frame = found = ""
    count = length = 0
    for line in (*lines, TRACEBACK):
        start = line[:12]
        if "|" in start:
            line = _MARGIN.sub("", line)  # of a group of exceptions
        elif not found and start[:4] == "    " and "+-" not in start:
            continue
        if (
            "+-" in start
            or line.startswith('  File "')
            or (line[:1] in "TD[+E" and _BETWEEN.match(line))
        ):
            if found:
                function = _FUNCTION.search(frame)
                yield f"{found.rstrip()} (in {function[1] if function else '?'})"[: 2 * MOST]
                count, length = count + 1, length + len(found)
            if count == MOST_EXCEPTIONS or length > 3 * MOST:
                return
            if found or not line.endswith(_WRAPPERS):
                frame = line
            found = ""
        elif found:
            if len(found) < MOST:
                found += f"\n{line[:400]}"
        elif frame and line[:1] not in ("", " ", "\t"):
            found = line[:MOST]


MOST_KNOWN = 500
"""Texts whose causes are remembered, because logs repeat themselves."""
SAID = "said"
"""The field with the reason that a server gave."""
ANSWERS = ("network", "remote", "login", "limits", "settings")
"""The families of causes for which another side may give a reason."""
VAGUE = 95
"""Causes from this rank on say little; then the outer words may name a better one."""


class Reading(NamedTuple):
    """What a log entry says."""

    place: Place | None
    operation: str
    """What was tried, such as `connect` or `send`; `work` if nothing says it."""
    cause: Cause | None
    fields: Mapping[str, str]
    """Values that the cause or the place has in this entry: host, port, path, module, …"""
    outcome: str
    """retried, given up, lost, recovered, or empty."""
    words: str
    """The start of the line that is Hermes' own words and may be quoted."""


class Reader:
    """Reads entries with the tables; texts read before are remembered.

    Place, operation and outcome matter only if something fails, so their readers are made then.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._known: dict[tuple[str, Sequence[str]], tuple[Cause | None, Mapping[str, str]]] = {}
        self._read_before: dict[tuple[str, str, Sequence[str], str], Reading] = {}

    @cached_property
    def _places(self) -> PlaceReader:
        from hermes_doctor.diagnosis.plugins.log_causes.place_reader import PlaceReader

        return PlaceReader(self.tables.places.places)

    @cached_property
    def _operations(self) -> OperationReader:
        from hermes_doctor.diagnosis.plugins.log_causes.phrases import OperationReader

        return OperationReader(self.tables.places.operations)

    @cached_property
    def _outcomes(self) -> OutcomeReader:
        from hermes_doctor.diagnosis.plugins.log_causes.phrases import OutcomeReader

        return OutcomeReader(self.tables.places.outcomes)

    @cached_property
    def _successes(self) -> SuccessReader:
        return SuccessReader(self.tables.places.successes, lambda: self._places)

    @property
    def causes(self) -> Sequence[Cause]:
        """The causes of the tables."""
        return self.tables.causes

    @property
    def index(self) -> CauseIndex:
        """The causes by the words of texts that name them."""
        return self.tables.cause_index

    def read(self, entry: LogEntry) -> Reading:
        """Return what an entry says."""
        key = entry.logger, entry.text, entry.more, entry.kind
        known = self._read_before.get(key)
        if known is None:
            if len(self._read_before) >= MOST_KNOWN:
                self._read_before.clear()
            known = self._read_before[key] = self._read(entry)
        return known

    def _read(self, entry: LogEntry) -> Reading:
        from hermes_doctor.diagnosis.plugins.log_causes.phrases import own_words
        from hermes_doctor.diagnosis.plugins.log_causes.place_reader import fields_of

        cause, fields = self.cause_of(entry.text, entry.more)
        found = self._places.read(entry.logger, entry.text, entry.kind)
        words = own_words(entry.text)
        operation = self._operations.read(entry.text, found.operation)
        outcome = self._outcomes.read(entry.text)
        values = {**fields_of(entry.text), **fields}
        if cause is not None and cause.family in ANSWERS:
            from hermes_doctor.diagnosis.plugins.log_causes.fields import server_words

            said = server_words("\n".join((entry.text, *entry.more[-3:])))
            values |= {SAID: said} if said else {}
        return Reading(found.place, operation, cause, values, outcome, words)

    def place_of(self, entry: LogEntry) -> Place | None:
        """Return the place that an entry is about."""
        return self._places.read(entry.logger, entry.text, entry.kind).place

    def successes(self, entry: LogEntry) -> Sequence[Success]:
        """Return what works again, as an entry shows."""
        return self._successes.read(entry)

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger could show that something works."""
        return self._successes.may_succeed(level, logger)

    def cause_of(
        self, text: str, more: Sequence[str] = ()
    ) -> tuple[Cause | None, Mapping[str, str]]:
        """Return the cause that a text names, with its fields.

        The innermost texts are asked first: the exceptions of the traceback, then what follows
        the first colon. The more basic of several causes wins.
        """
        key = text, tuple(more)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._cause_of(text, more)
        return known

    def _cause_of(self, text: str, more: Sequence[str]) -> tuple[Cause | None, Mapping[str, str]]:
        parts = parts_of(text, more)
        found = [one for exception in parts.exceptions for one in self.index.find(exception)]
        if not found or min(one.cause.rank for one in found) >= VAGUE:
            outer = self.index.find(parts.message) if parts.message else []
            inner = found + [one for one in outer if one.end > parts.start]
            if inner and min(one.cause.rank for one in inner) < VAGUE:
                found = inner
            else:
                found += outer
        if not found:
            return None, EMPTY
        from hermes_doctor.diagnosis.plugins.log_causes.fields import lacks_fields, with_fields

        best = min(found, key=_order)
        if lacks_fields(best):
            outer = self.index.find(parts.message)
            best = min((best, *(one for one in outer if one.cause == best.cause)), key=_order)
        return best.cause, with_fields(best, (*parts.exceptions, parts.message))


def _order(found: Found) -> tuple[int, int]:
    """Put the most basic cause first; of the same one, that with the most fields."""
    return found.cause.rank, -len(found.fields)
