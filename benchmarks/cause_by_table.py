"""Read the place and the cause of an entry with the built-in tables of causes and places."""

from __future__ import annotations

from functools import cache

from hermes_doctor.diagnosis.plugins.built_in import builtin
from hermes_doctor.diagnosis.plugins.log_causes.reading import Reader
from hermes_doctor.diagnosis.plugins.log_causes.tables import read_source
from hermes_doctor.hermes.logs.entry import LogEntry


@cache
def _reader() -> Reader:
    return Reader(read_source(builtin("checks") / "signatures"))


def read(entry: LogEntry) -> tuple[str, str, str, str]:
    """Return place, operation, cause and outcome; empty where the tables say nothing."""
    found = _reader().read(entry)
    place = f"{found.place.part}:{found.place.name}" if found.place else ""
    return place, found.operation, found.cause.name if found.cause else "", found.outcome
