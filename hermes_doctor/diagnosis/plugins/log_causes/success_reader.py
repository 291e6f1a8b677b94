"""Recognise the lines which show that a place works again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.diagnosis.plugins.log_causes.place import MOST_LOGGERS, Place, SuccessRow
from hermes_doctor.hermes.logs.entry import LogEntry

if TYPE_CHECKING:
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
