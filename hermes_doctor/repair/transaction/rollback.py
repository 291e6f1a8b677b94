"""Roll back the changes of a run, except for files that another program has changed since."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal, PathRecord
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.home import database_of, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.atomic_switch import AS_BEFORE, STAYS, Switch, switches
from hermes_doctor.repair.transaction.undo_guards import files_created_with
from hermes_doctor.sqlite.exclusive import exclusive_access


class RollbackResult(NamedTuple):
    """The result of a rollback: which paths were not restored, and why."""

    left: list[str]
    """Paths that stay as they are, because another program changed them after the run."""
    used: list[str]
    """Databases with their old content and what was written to them since."""
    logs: list[str]
    """The paths in `left` that are logs moved without their database, which changed since."""


def roll_back(
    journal: Journal,
    backup: Backup,
    records: Sequence[PathRecord],
    *,
    locked: bool = False,
) -> RollbackResult:
    """Restore the old state of the paths, except for those that were changed since.

    If one path cannot be restored, copies of the new versions of the others are kept with the
    backup, because they belong to that one. `locked` means that we hold the databases' locks.
    """
    left: list[str] = []
    used: list[str] = []
    records = [record for record in records if not record.reverted]
    found = list(switches(journal, records))
    modes = [record for record in records if paths.changes_only_mode(record)]
    logs: list[str] = []
    stay = [one for one in found if _has_changed(journal, one, locked=locked)]
    made = [
        file
        for one in stay
        if is_lone_sidecar(one)
        for file in files_created_with(journal, one.main)
    ]
    foreign = [mode for mode in modes if not _is_ours(journal, mode)]
    if len(records) > 1 and (stay or foreign):
        for switch in found:
            if switch not in stay and switch.main not in made and switch.is_done():
                _keep_copy(switch.path, switch.main, backup)
    for record in reversed(modes):
        stays = record in foreign or paths.was_used_since(journal, journal.path_of(record))
        if not stays and _restore_mode(journal.path_of(record), record, backup, journal.id):
            record.reverted = True
        else:
            left.append(record.path)
    made = []
    moved = [one for one in found if paths.is_log(one.path)]
    for switch in (*reversed(moved), *reversed([one for one in found if one not in moved])):
        outcome = STAYS if switch.main in made else _back(journal, switch, backup, locked=locked)
        if outcome == STAYS:
            left += [record.path for record in switch.records]
            if paths.is_log(switch.path):  # the file that keeps its rows stays as well
                logs.append(switch.main.path)
                made += files_created_with(journal, switch.main)
            continue
        if outcome == AS_BEFORE and is_database(switch.path):
            used.append(switch.main.path)
        for record in switch.records:
            record.reverted = True
    for folder in sorted({(journal.path_of(record)).parent for record in records}):
        with contextlib.suppress(OSError):
            disk.sync_folder(folder)
    return RollbackResult(left, used, logs)


def _back(journal: Journal, switch: Switch, backup: Backup, *, locked: bool) -> str:
    """Reverse one switch; for a lone sidecar, its database is locked too."""
    if not is_lone_sidecar(switch):
        return switch.back(backup, locked=locked)
    with contextlib.ExitStack() as guards:
        try:
            if not locked:
                guards.enter_context(exclusive_access(database_of(switch.path)))
        except Trouble:
            return STAYS if switch.is_done() else AS_BEFORE
        if is_used_lone_sidecar(journal, switch):
            return STAYS
        return switch.back(backup, locked=locked)


def is_lone_sidecar(switch: Switch) -> bool:
    """Whether the switch moved a sidecar without its database."""
    return is_database(switch.path) and database_of(switch.path) != switch.path


def is_used_lone_sidecar(journal: Journal, switch: Switch) -> bool:
    """Whether a sidecar was moved without its database, and the database was used since.

    Then the sidecar no longer belongs to that database.
    """
    return (
        is_lone_sidecar(switch) and switch.is_done() and paths.was_used_since(journal, switch.path)
    )


def _has_changed(journal: Journal, switch: Switch, *, locked: bool = False) -> bool:
    """Whether a switch happened, and its database or file was changed since."""
    return switch.is_done() and (
        switch.is_used(locked=locked) or is_used_lone_sidecar(journal, switch)
    )


def used_after_switch(journal: Journal) -> list[Switch]:
    """The switches that happened and whose database or file was changed since."""
    return [switch for switch in switches(journal, journal.paths) if _has_changed(journal, switch)]


def _is_ours(journal: Journal, record: PathRecord) -> bool:
    """Whether mode and owner of a path are as they were before the run, or as it set them."""
    now = paths.read_state(journal.path_of(record), content=False)
    return paths.matches(now, record.before) or paths.is_ours(now, record)


def _restore_mode(path: Path, record: PathRecord, backup: Backup, run: str) -> bool:
    """Restore mode and owner of a path; return False if the owner could not be restored."""
    if paths.matches(paths.read_state(path, content=False), record.before):
        return True
    return paths.restore(backup, backup.entry(record.path), path, run)


def _keep_copy(path: Path, record: PathRecord, backup: Backup) -> None:
    """Try to copy the new version of a file into the folder of the run's backup."""
    if record.after.kind != "file" or is_database(path):
        return
    place = paths.rolled_back_folder(backup) / record.path.lstrip("/")
    with contextlib.suppress(OSError):
        disk.make_folder(place.parent)
        with disk.new_file(place) as fd:
            disk.copy(path, fd)
        disk.sync_folder(place.parent)
