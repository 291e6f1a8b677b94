"""The switches that a run makes, one for each path or database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes_doctor.home import Home, database_of, is_database
from hermes_doctor.records.journal import Journal, PathRecord
from hermes_doctor.repair import paths
from hermes_doctor.repair.atomic_switch import Switch
from hermes_doctor.repair.switch_parts import Sidecar


def switches(home: Home, log: Journal, records: Sequence[PathRecord]) -> Iterator[Switch]:
    """Yield the switches that the records of a run describe, in order.

    A sidecar whose database is not replaced is a switch of its own.
    """
    replaced = {home.path / one.path: one for one in records if not paths.changes_only_mode(one)}
    beside: dict[Path, list[Sidecar]] = {}
    for path, record in replaced.items():
        if is_database(path) and (database := database_of(path)) != path and database in replaced:
            beside.setdefault(database, []).append(Sidecar(path, record))
    moved = {one.path for group in beside.values() for one in group}
    for path, record in replaced.items():
        if path not in moved:
            yield Switch(path, log.id, record, beside.get(path, []))
