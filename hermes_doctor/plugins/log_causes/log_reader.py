"""Read entries with all tables of a folder: place, operation, cause, outcome and successes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hermes_doctor.lazy import pattern
from hermes_doctor.logs.entry import LogEntry
from hermes_doctor.plugins.log_causes.cause import Cause
from hermes_doctor.plugins.log_causes.phrases import OperationReader, OutcomeReader
from hermes_doctor.plugins.log_causes.place import PlaceTables
from hermes_doctor.plugins.log_causes.place_reader import PlaceReader, fields_of
from hermes_doctor.plugins.log_causes.reading import MOST_KNOWN, Reader, Reading
from hermes_doctor.plugins.log_causes.success_reader import Success, SuccessReader
from hermes_doctor.plugins.log_causes.tables import Tables

MOST = 2000
_OWN = pattern(r"(?:\[[^\]]{0,60}\]:? ?){0,2}[^:'\"\n(\[{]{3,100}")
"""The start of a line up to a colon, a quote or a bracket."""


class LogReader(Reader):
    """Reads whole entries; readings of texts read before are remembered."""

    def __init__(self, tables: Tables, places: PlaceTables) -> None:
        super().__init__(tables)
        self.places = places
        self._place = PlaceReader(places.places)
        self._operation = OperationReader(places.operations)
        self._outcome = OutcomeReader(places.outcomes)
        self._success = SuccessReader(places.successes, places.places)
        self._readings: dict[tuple[str, str, tuple[str, ...], str], Reading] = {}
        self._succeeding: dict[tuple[str, str], bool] = {}

    @cached_property
    def causes(self) -> Sequence[Cause]:
        """The known causes."""
        return [cause for cause, _ in self.tables.causes]

    def read(self, entry: LogEntry) -> Reading:
        """Return what an entry says."""
        key = entry.logger, entry.text, entry.more, entry.kind
        known = self._readings.get(key)
        if known is None:
            if len(self._readings) >= MOST_KNOWN:
                self._readings.clear()
            known = self._readings[key] = self._read(entry)
        return known

    def _read(self, entry: LogEntry) -> Reading:
        cause, fields = self.cause_of(entry.text, entry.more)
        place, usual = self._place.read(entry.logger, entry.text, entry.kind)
        own = _OWN.match(entry.text)
        words = own[0].rstrip(" ,;-—") if own else ""
        operation = self._operation.read(words, usual)
        outcome = self._outcome.read(entry.text[:MOST])
        named = fields_of(entry.text)
        return Reading(place, operation, cause, {**named, **fields}, outcome, words)

    def successes(self, entry: LogEntry) -> Sequence[Success]:
        """Return what works again, as an entry shows."""
        if not self.may_succeed(entry.level, entry.logger):
            return ()
        return self._success.read(entry)

    def may_succeed(self, level: str, logger: str) -> bool:
        """Tell whether entries of this level and logger could show that something works."""
        key = level, logger
        known = self._succeeding.get(key)
        if known is None:
            known = any(
                row.level == level
                and (not row.loggers or any(_is_below(logger, name) for name in row.loggers))
                for row in self.places.successes
            )
            if len(self._succeeding) < MOST_KNOWN:
                self._succeeding[key] = known
        return known


def _is_below(logger: str, name: str) -> bool:
    return logger == name or (logger.startswith(name) and logger[len(name)] in "._")
