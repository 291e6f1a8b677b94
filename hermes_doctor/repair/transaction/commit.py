"""Commit a run: put the staged files in place."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.core.home import database_of
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.atomic_switch import switches
from hermes_doctor.repair.transaction.targets import Target


def commit(journal: Journal, targets: Sequence[Target]) -> None:
    """Change every path in the order of the targets; a database and its log in one switch."""
    found = {target.path: target for target in targets}
    todo = {
        path: switch
        for switch in switches(journal, journal.paths)
        for path in (switch.path, *(one.path for one in switch.sidecars))
    }
    finished: set[Path] = set()
    for target in targets:
        if not target.replaces:
            paths.set_mode_and_owner(target.change)
            continue
        switch = todo[target.path]
        if switch.path in finished:
            continue
        finished.add(switch.path)
        members = [switch.path, *(sidecar.path for sidecar in switch.sidecars)]
        taken = {path: known for member in members for path, known in found[member].change.beside}
        taken |= {path: found[path].change.expect for path in members}
        switch.forward(taken)


def databases_of(targets: Sequence[Target], run: str) -> list[Path]:
    """All files to lock: the databases that a run replaces, and their staged and joined copies."""
    databases = sorted({database_of(target.path) for target in targets if target.is_database})
    places = (paths.joined_old_path, paths.joined_new_path, paths.staged_path)
    return [*databases, *(place(database, run) for database in databases for place in places)]
