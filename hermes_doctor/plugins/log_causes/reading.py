"""Read a log entry into place, operation, cause and outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes_doctor.lazy import EMPTY, NamedTuple
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.cause import Cause as Cause

MOST_KNOWN = 500
"""Texts whose readings are remembered, because logs repeat themselves."""


class Place(NamedTuple):
    """Who reports something."""

    part: str
    """gateway, platform, model, tools, cron, kanban, data, update, dashboard, memory or plugins."""
    name: str
    """The platform's id, such as `telegram`; else the words of the place."""
    label: str
    """The place as people write it."""


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


class Tables(NamedTuple):
    """The tables of a folder, and the mistakes in them."""

    causes: Sequence[Cause] = ()
    faults: Sequence[object] = ()
    """Mistakes with file and line; what has one is left out."""


class Reader:
    """Reads entries with the tables; texts read before are remembered."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables

    def read(self, entry: LogEntry) -> Reading:
        """Return what an entry says."""
        cause, fields = self.cause_of(entry.text, entry.more)
        return Reading(None, "work", cause, fields, "", "")

    def cause_of(
        self, text: str, more: Sequence[str] = ()
    ) -> tuple[Cause | None, Mapping[str, str]]:
        """Return the cause that a text names, with its fields."""
        return None, EMPTY


def load_tables(folder: Path) -> Tables:
    """Return the tables of a folder of log rules."""
    return Tables()
