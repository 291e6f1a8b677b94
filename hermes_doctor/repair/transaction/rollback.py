"""Roll back the changes of a run, except where another program made others; then clean up.

Of the temporary files of a run, none is removed that is the only copy of some content.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.records.journal import ABANDONED, DONE, PARTLY, Journal, PathRecord, State
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.home import SIDECARS, database_of, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook, Trouble
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import LONGEST_NAME, list_folder, snapshot
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.atomic_switch import (
    AS_BEFORE,
    STAYS,
    Switch,
    is_same_file,
    switches,
)
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


class _Replaced(NamedTuple):
    """A replaced file, and the state it must have to be removed."""

    path: Path
    state: State
    ending: str
    """The suffix that its visible name gets if the file is kept."""


def clean(journal: Journal, backup: Backup | None) -> None:
    """Remove the files of a run.

    A replaced file that differs from its backup was edited during the run. It is kept under a
    visible name, and so is a file whose backup cannot be read. If one file cannot be removed, the
    others still are.
    """
    journal.unremoved = [
        name for name in journal.unremoved if os.path.lexists(journal.current_home.path / name)
    ]
    present: dict[Path, list[str]] = {}
    for folder in {(journal.path_of(record)).parent for record in journal.paths}:
        with contextlib.suppress(CouldNotLook):  # a folder too full to be listed
            present[folder] = list_folder(folder)
    # Record files that were kept before the cleanup of the run was interrupted.
    mark = f".kept-{journal.id}"
    targets = {journal.path_of(record) for record in journal.paths}
    stems = {(database_of(target) if is_database(target) else target) for target in targets}
    for folder, names in present.items():
        for name in (name for name in names if mark in name):
            kept = journal.current_home.name_of(folder / name)
            if folder / name.partition(mark)[0] in stems and kept not in journal.kept:
                journal.kept.append(kept)
    if journal.end != ABANDONED:
        for record in journal.paths:
            if not paths.changes_only_mode(record):
                _keep_if_edited(journal, backup, record)
    for path in _places(journal, present):
        _remove(journal, path)
    if journal.end not in (DONE, PARTLY):
        paths.remove_folders(journal)


def _places(journal: Journal, present: dict[Path, list[str]]) -> list[Path]:
    """The files that the run left beside its targets.

    If a folder could not be listed, every name that the run may have used.
    """
    places = (
        paths.staged_path,
        paths.kept_path,
        paths.restoring_path,
        paths.joined_old_path,
        paths.joined_new_path,
    )
    targets = [journal.path_of(record) for record in journal.paths]
    ours = {place(path, journal.id) for path in targets for place in places}
    found = {path.with_name(path.name + suffix) for path in ours for suffix in ("", *SIDECARS)}
    mark = f".hermes-doctor-{journal.id}."
    stems = {(one.parent, one.name.partition(mark)[0]) for one in ours}
    for folder, names in present.items():
        marked = [name for name in names if mark in name]
        found |= {folder / name for name in marked if (folder, name.partition(mark)[0]) in stems}
    there = {folder / name for folder, names in present.items() for name in names}
    return sorted(one for one in found if one.parent not in present or one in there)


def try_again(journal: Journal) -> bool:
    """Remove leftover files of an earlier run; return whether all are gone."""
    for name in list(journal.unremoved):
        with contextlib.suppress(OSError):
            disk.remove(journal.current_home.path / name)
            journal.unremoved.remove(name)
    return not journal.unremoved


def _remove(journal: Journal, path: Path) -> None:
    name = journal.current_home.name_of(path)
    if name in journal.kept:
        return
    try:
        disk.remove(path)
    except OSError:
        if os.path.lexists(path) and name not in journal.unremoved:
            journal.unremoved.append(name)


def _keep_if_edited(journal: Journal, backup: Backup | None, record: PathRecord) -> None:
    path = journal.path_of(record)
    copies = [
        _Replaced(paths.kept_path(path, journal.id), record.before, ""),
        _Replaced(paths.staged_path(path, journal.id), record.after, "-new"),
    ]
    if record.joined_before:
        place = paths.joined_old_path(path, journal.id)
        copies.append(_Replaced(place, record.joined_before, "-joined"))
    if record.joined_after:
        place = paths.joined_new_path(path, journal.id)
        copies.append(_Replaced(place, record.joined_after, "-joined-new"))
    old = copies[0].path
    if backup is None and os.path.lexists(old) and not is_same_file(old, path):
        _keep(journal, path, copies[0])
    for replaced in copies:
        if _is_edited(path, replaced):
            _keep(journal, path, replaced)


def _is_edited(path: Path, one: _Replaced) -> bool:
    """Whether a file that is about to be removed has content that no other file has.

    The content decides, not the timestamp: an editor may have set the time back.
    """
    now = snapshot(one.path)
    if now.kind != "file" or path.name.endswith("-shm"):
        return False
    if one.state.kind != "file":
        return True
    with contextlib.suppress(OSError, CouldNotLook):
        return (
            not is_same_file(one.path, path)
            and disk.digest(one.path, like=one.state.sha256) != one.state.sha256
        )
    return True


def _keep(journal: Journal, path: Path, one: _Replaced) -> None:
    """Rename a file to a visible name; a database and its logs are renamed together."""
    group = [(path, one.path)]
    if is_database(path) and not one.ending:
        database = database_of(path)
        names = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-journal")]
        group = [(name, paths.kept_path(name, journal.id)) for name in names]
    for name, place in group:
        if not os.path.lexists(place):
            continue
        main = database_of(name) if is_database(name) else name
        suffix = name.name.removeprefix(main.name)
        visible = main.with_name(f"{main.name}.kept-{journal.id}{one.ending}{suffix}")
        stays = place
        if len(os.fsencode(visible.name)) <= LONGEST_NAME:
            with contextlib.suppress(OSError):
                disk.rename_to_free(place, visible)
                stays = visible
        if journal.current_home.name_of(stays) not in journal.kept:
            journal.kept.append(journal.current_home.name_of(stays))
