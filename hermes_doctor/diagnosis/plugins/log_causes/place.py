"""What the tables of places, operations and successes say, and their packed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermes_doctor.core.lazy import NamedTuple

PARTS = (
    "gateway", "platform", "model", "tools", "cron", "kanban", "data", "update", "dashboard",
    "memory", "plugins",
)  # fmt: skip
"""The parts of a bot."""
WORK = "work"
"""The operation of a line that names none."""
OPERATIONS = (
    "connect", "log in", "receive", "send", "call the model", "run a tool", "run a job",
    "load a plugin", "save", "read", "compress", "start", "stop", "update", WORK,
)  # fmt: skip
MOST_LOGGERS = 2000
"""A log may contain any number of loggers."""
RETRIED, GIVEN_UP, LOST, RECOVERED = "retried", "given up", "lost", "recovered"
OUTCOMES = (RETRIED, GIVEN_UP, LOST, RECOVERED)


class Place(NamedTuple):
    """Who reports something."""

    part: str
    """One of `PARTS`."""
    name: str
    """The platform's id, such as `telegram`; else the words of the place."""
    label: str
    """The place as people write it."""


class PlaceRow(NamedTuple):
    """A place, and how its lines are recognised."""

    part: str
    name: str
    label: str
    loggers: Sequence[str] = ()
    """Its loggers have one of these names, or go on after it with `.` or `_`."""
    words: Sequence[str] = ()
    """How the lines of shared loggers name it."""
    common: bool = False
    """Its words are everyday words too, so they name it only where a platform is named."""
    shared: bool = False
    """Its loggers write about other places, too."""
    operation: str = WORK
    """What it does, if a line names no operation."""

    @property
    def place(self) -> Place:
        """The place itself."""
        return Place(self.part, self.name, self.label)


class Phrases(NamedTuple):
    """The phrases that name an operation or an outcome."""

    name: str
    phrases: Sequence[tuple[str, Sequence[str]]]
    """Regular expressions for words in small or capital letters, each with literals in small
    letters of which every match contains one; none if any text may match.
    """


class SuccessRow(NamedTuple):
    """A line which shows that something works again."""

    pattern: str
    operations: Sequence[str]
    loggers: Sequence[str] = ()
    place: str = ""
    """The name of a place; empty if the place of the line itself works again."""
    level: str = "INFO"
    literals: Sequence[str] = ()


class PlaceTables(NamedTuple):
    """The tables of places, operations, outcomes and successes of a folder."""

    places: Sequence[PlaceRow] = ()
    operations: Sequence[Phrases] = ()
    outcomes: Sequence[Phrases] = ()
    successes: Sequence[SuccessRow] = ()


_ROWS = (PlaceRow, Phrases, Phrases, SuccessRow)


def unpack(packed: Sequence[Sequence[Sequence[Any]]]) -> PlaceTables:
    """Rebuild tables from their packed form."""
    rows = zip(_ROWS, packed, strict=True)
    return PlaceTables(*([kind(*row) for row in table] for kind, table in rows))
