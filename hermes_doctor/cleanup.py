"""Remove what a run left beside its targets, but never content that is nowhere else."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hermes_doctor import durable, paths
from hermes_doctor.files import LONGEST_NAME, listing, snapshot
from hermes_doctor.home import SIDECARS, Home, is_database, main_of
from hermes_doctor.journal import ABANDONED, DONE, PARTLY, Journal, PathRecord, State
from hermes_doctor.model import CouldNotLook
from hermes_doctor.values import NamedTuple
from hermes_doctor.vault import Backup


class _Replaced(NamedTuple):
    """A file that was in place before or during the run, and what it must be to be removed."""

    place: Path
    state: State
    mtime_ns: int
    """A file of this time has not been written to; 0 where that is unknown."""
    ending: str
    """What follows the name of the file if it is kept."""


def clean(home: Home, log: Journal, backup: Backup | None) -> None:
    """Remove the files of a run.

    A replaced file that differs from its backup was edited while the run was at work. It is kept
    under a visible name. One file that cannot be removed does not stop the removal of the others.
    """
    log.unremoved = [name for name in log.unremoved if os.path.lexists(home.path / name)]
    if backup is not None and log.end != ABANDONED:
        for record in log.paths:
            if not paths.only_mode(record):
                _keep_if_edited(home, log, backup, record)
    for record in log.paths:
        path = home.path / record.path
        places = (paths.staged, paths.kept, paths.returning, paths.joined_old, paths.joined_new)
        ours = [place(path, log.id).name for place in places]
        names = {name + suffix for name in ours for suffix in ("", *SIDECARS)}
        with contextlib.suppress(CouldNotLook):  # a folder too full to be listed
            names |= {name for name in listing(path.parent) if name.startswith(tuple(ours))}
        for name in sorted(names):
            _remove(home, log, path.with_name(name))
    if log.end not in (DONE, PARTLY):
        paths.remove_folders(home, log)


def try_again(home: Home, log: Journal) -> bool:
    """Remove what could not be removed before; whether nothing of it is left."""
    for name in list(log.unremoved):
        with contextlib.suppress(OSError):
            durable.remove(home.path / name)
            log.unremoved.remove(name)
    return not log.unremoved


def _remove(home: Home, log: Journal, path: Path) -> None:
    name = home.name_of(path)
    if name in log.kept:
        return
    try:
        durable.remove(path)
    except OSError:
        if os.path.lexists(path) and name not in log.unremoved:
            log.unremoved.append(name)


def _keep_if_edited(home: Home, log: Journal, backup: Backup, record: PathRecord) -> None:
    path = home.path / record.path
    entry = backup.entry(record.path)
    written_at = entry.mtime_ns if entry is not None else 0
    found = [
        _Replaced(paths.kept(path, log.id), record.before, written_at, ""),
        _Replaced(paths.staged(path, log.id), record.after, 0, "-new"),
    ]
    if record.joined_before:
        place = paths.joined_old(path, log.id)
        found.append(_Replaced(place, record.joined_before, written_at, "-joined"))
    if record.joined_after:
        place = paths.joined_new(path, log.id)
        found.append(_Replaced(place, record.joined_after, 0, "-joined-new"))
    for one in found:
        if _is_edited(path, one):
            _keep(home, log, path, one)


def _is_edited(path: Path, one: _Replaced) -> bool:
    """Whether a file that is about to be removed holds something that is nowhere else."""
    now = snapshot(one.place)
    if now.kind != "file" or path.name.endswith("-shm"):
        return False
    if one.state.kind != "file":
        return True
    if now.mtime_ns == one.mtime_ns:
        return False
    with contextlib.suppress(OSError, CouldNotLook):
        in_place = snapshot(path)
        if (in_place.dev, in_place.ino) == (now.dev, now.ino):  # a second name of the same file
            return False
        return durable.digest(one.place, like=one.state.sha256) != one.state.sha256
    return True


def _keep(home: Home, log: Journal, path: Path, one: _Replaced) -> None:
    """Give a file a visible name; a database keeps its log, or the log its database."""
    group = [(path, one.place)]
    if is_database(path) and not one.ending:
        database = main_of(path)
        names = [database.with_name(database.name + suffix) for suffix in ("", "-wal", "-journal")]
        group = [(name, paths.kept(name, log.id)) for name in names]
    for name, place in group:
        if not os.path.lexists(place):
            continue
        main = main_of(name) if is_database(name) else name
        suffix = name.name.removeprefix(main.name)
        visible = main.with_name(f"{main.name}.kept-{log.id}{one.ending}{suffix}")
        if len(os.fsencode(visible.name)) > LONGEST_NAME:
            visible = place
        else:
            with contextlib.suppress(OSError):
                durable.rename_to_free(place, visible)
        stays = visible if os.path.lexists(visible) else place
        if home.name_of(stays) not in log.kept:
            log.kept.append(home.name_of(stays))
