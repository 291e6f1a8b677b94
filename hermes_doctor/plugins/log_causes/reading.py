"""Read a log entry into place, operation, cause and outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from hermes_doctor.lazy import EMPTY, NamedTuple
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.cause import Cause as Cause
from hermes_doctor.plugins.log_causes.cause_index import CauseIndex, Found
from hermes_doctor.plugins.log_causes.error_parts import parts_of
from hermes_doctor.plugins.log_causes.fields import lacks_fields, with_fields
from hermes_doctor.plugins.log_causes.phrases import OperationReader, OutcomeReader, own_words
from hermes_doctor.plugins.log_causes.place import Place as Place
from hermes_doctor.plugins.log_causes.place_reader import PlaceReader, fields_of
from hermes_doctor.plugins.log_causes.success_reader import Success as Success, SuccessReader
from hermes_doctor.plugins.log_causes.tables import Tables as Tables, load_tables as load_tables

MOST_KNOWN = 500
"""Texts whose causes are remembered, because logs repeat themselves."""
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
    """Reads entries with the tables; texts read before are remembered."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        rows = tables.places
        self._places = PlaceReader(rows.places)
        self._operations = OperationReader(rows.operations)
        self._outcomes = OutcomeReader(rows.outcomes)
        self._successes = SuccessReader(rows.successes, self._places)
        self._known: dict[tuple[str, Sequence[str]], tuple[Cause | None, Mapping[str, str]]] = {}

    @cached_property
    def index(self) -> CauseIndex:
        """The causes, indexed on first use."""
        return CauseIndex(self.tables.causes)

    def read(self, entry: LogEntry) -> Reading:
        """Return what an entry says."""
        cause, fields = self.cause_of(entry.text, entry.more)
        found = self._places.read(entry.logger, entry.text, entry.kind)
        words = own_words(entry.text)
        operation = self._operations.read(entry.text, found.operation)
        outcome = self._outcomes.read(entry.text)
        return Reading(
            found.place, operation, cause, {**fields_of(entry.text), **fields}, outcome, words
        )

    def place_of(self, entry: LogEntry) -> Place | None:
        """Return the place that an entry is about."""
        return self._places.read(entry.logger, entry.text, entry.kind).place

    def successes(self, entry: LogEntry) -> Sequence[Success]:
        """Return what works again, as an entry shows."""
        return self._successes.read(entry)

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
        found = [one for said in parts.exceptions for one in self.index.find(said)]
        if not found or min(one.cause.rank for one in found) >= VAGUE:
            outer = self.index.find(parts.message) if parts.message else []
            inner = found + [one for one in outer if one.end > parts.start]
            if inner and min(one.cause.rank for one in inner) < VAGUE:
                found = inner
            else:
                found += outer
        if not found:
            return None, EMPTY
        best = min(found, key=_order)
        if lacks_fields(best):
            outer = self.index.find(parts.message)
            best = min((best, *(one for one in outer if one.cause == best.cause)), key=_order)
        return best.cause, with_fields(best, (*parts.exceptions, parts.message))


def _order(found: Found) -> tuple[int, int]:
    """Put the most basic cause first; of the same one, that with the most fields."""
    return found.cause.rank, -len(found.fields)
