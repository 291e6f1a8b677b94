"""Remove the temporary files of a run, but never the only copy of some content."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes_doctor.backup.records.journal import ABANDONED, DONE, PARTLY, Journal, PathRecord, State
from hermes_doctor.backup.vault.manifest import Backup
from hermes_doctor.core.home import SIDECARS, database_of, is_database
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.model import CouldNotLook
from hermes_doctor.core.system import disk
from hermes_doctor.core.system.files import LONGEST_NAME, list_folder, snapshot
from hermes_doctor.repair.transaction import paths
from hermes_doctor.repair.transaction.atomic_switch import is_same_file


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
