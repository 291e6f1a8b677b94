"""Remove the temporary files of a run, but never the only copy of some content."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes_doctor.backup.manifest import Backup
from hermes_doctor.home import SIDECARS, Home, database_of, is_database
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.model import CouldNotLook
from hermes_doctor.records.journal import ABANDONED, DONE, PARTLY, Journal, PathRecord, State
from hermes_doctor.repair import paths
from hermes_doctor.system import disk
from hermes_doctor.system.files import LONGEST_NAME, list_folder, snapshot


class _Replaced(NamedTuple):
    """A replaced file, and the state it must have to be removed."""

    path: Path
    state: State
    ending: str
    """The suffix that its visible name gets if the file is kept."""


def clean(home: Home, log: Journal, backup: Backup | None) -> None:
    """Remove the files of a run.

    A replaced file that differs from its backup was edited during the run. It is kept under a
    visible name, and so is a file whose backup cannot be read. If one file cannot be removed, the
    others still are.
    """
    log.unremoved = [name for name in log.unremoved if os.path.lexists(home.path / name)]
    present: dict[Path, list[str]] = {}
    for folder in {(home.path / record.path).parent for record in log.paths}:
        with contextlib.suppress(CouldNotLook):  # a folder too full to be listed
            present[folder] = list_folder(folder)
    _remember_kept(home, log, present)
    if log.end != ABANDONED:
        for record in log.paths:
            if not paths.changes_only_mode(record):
                _keep_if_edited(home, log, backup, record)
    for path in _places(home, log, present):
        _remove(home, log, path)
    if log.end not in (DONE, PARTLY):
        paths.remove_folders(home, log)


def _places(home: Home, log: Journal, present: dict[Path, list[str]]) -> list[Path]:
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
    targets = [home.path / record.path for record in log.paths]
    ours = {place(path, log.id) for path in targets for place in places}
    found = {one.with_name(one.name + suffix) for one in ours for suffix in ("", *SIDECARS)}
    mark = f".hermes-doctor-{log.id}."
    stems = {(one.parent, one.name.partition(mark)[0]) for one in ours}
    for folder, names in present.items():
        marked = [name for name in names if mark in name]
        found |= {folder / name for name in marked if (folder, name.partition(mark)[0]) in stems}
    there = {folder / name for folder, names in present.items() for name in names}
    return sorted(one for one in found if one.parent not in present or one in there)


def _remember_kept(home: Home, log: Journal, present: dict[Path, list[str]]) -> None:
    """Record files that were kept before the cleanup of the run was interrupted."""
    mark = f".kept-{log.id}"
    targets = {home.path / record.path for record in log.paths}
    stems = {(database_of(one) if is_database(one) else one) for one in targets}
    for folder, names in present.items():
        for name in (name for name in names if mark in name):
            kept = home.name_of(folder / name)
            if folder / name.partition(mark)[0] in stems and kept not in log.kept:
                log.kept.append(kept)


def try_again(home: Home, log: Journal) -> bool:
    """Remove leftover files of an earlier run; return whether all are gone."""
    for name in list(log.unremoved):
        with contextlib.suppress(OSError):
            disk.remove(home.path / name)
            log.unremoved.remove(name)
    return not log.unremoved


def _remove(home: Home, log: Journal, path: Path) -> None:
    name = home.name_of(path)
    if name in log.kept:
        return
    try:
        disk.remove(path)
    except OSError:
        if os.path.lexists(path) and name not in log.unremoved:
            log.unremoved.append(name)


def _keep_if_edited(home: Home, log: Journal, backup: Backup | None, record: PathRecord) -> None:
    path = home.path / record.path
    found = [
        _Replaced(paths.kept_path(path, log.id), record.before, ""),
        _Replaced(paths.staged_path(path, log.id), record.after, "-new"),
    ]
    if record.joined_before:
        place = paths.joined_old_path(path, log.id)
        found.append(_Replaced(place, record.joined_before, "-joined"))
    if record.joined_after:
        place = paths.joined_new_path(path, log.id)
        found.append(_Replaced(place, record.joined_after, "-joined-new"))
    if backup is None and _is_alone(found[0].path, path):
        _keep(home, log, path, found[0])
    for one in found:
        if _is_edited(path, one):
            _keep(home, log, path, one)


def _is_alone(old: Path, path: Path) -> bool:
    """Whether a replaced file is more than a hard link to the file in place."""
    first, second = snapshot(old), snapshot(path)
    return first.kind != "absent" and (first.dev, first.ino) != (second.dev, second.ino)


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
            _is_alone(one.path, path)
            and disk.digest(one.path, like=one.state.sha256) != one.state.sha256
        )
    return True


def _keep(home: Home, log: Journal, path: Path, one: _Replaced) -> None:
    """Rename a file to a visible name; a database and its logs are renamed together."""
    group = [(path, one.path)]
    if is_database(path) and not one.ending:
        database = database_of(path)
        names = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-journal")]
        group = [(name, paths.kept_path(name, log.id)) for name in names]
    for name, place in group:
        if not os.path.lexists(place):
            continue
        main = database_of(name) if is_database(name) else name
        suffix = name.name.removeprefix(main.name)
        visible = main.with_name(f"{main.name}.kept-{log.id}{one.ending}{suffix}")
        stays = place
        if len(os.fsencode(visible.name)) <= LONGEST_NAME:
            with contextlib.suppress(OSError):
                disk.rename_to_free(place, visible)
                stays = visible
        if home.name_of(stays) not in log.kept:
            log.kept.append(home.name_of(stays))
