"""Reverse the changes of a run, except where somebody has changed the files since."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from hermes_doctor.backup.vault import Backup
from hermes_doctor.home import Home, is_database, main_of
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.records.journal import Journal, PathRecord
from hermes_doctor.repair import paths
from hermes_doctor.repair.atomic_switch import AS_BEFORE, STAYS, Switch, switches
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot


class RolledBack(NamedTuple):
    """What became of the paths of a run that was reversed."""

    left: list[str]
    """Paths that stay as they are, because somebody changed them after the run did."""
    used: list[str]
    """Databases that hold everything they held before, and what was written to them since."""


def roll_back(
    home: Home,
    log: Journal,
    backup: Backup,
    records: Sequence[PathRecord],
    *,
    locked: bool = False,
) -> RolledBack:
    """Put back what the paths were, except for those that somebody has changed since.

    If one of them has to stay, a copy of what the run made of the others is kept with the backup,
    because it belongs to that one. `locked` means that we hold the locks of the databases.
    """
    left: list[str] = []
    used: list[str] = []
    records = [record for record in records if not record.reverted]
    found = list(switches(home, log, records))
    modes = [record for record in records if paths.only_mode(record)]
    stay = [one for one in found if one.is_done() and one.is_used(locked=locked)]
    foreign = [one for one in modes if not _is_ours(home, one)]
    if len(records) > 1 and (stay or foreign):
        for one in found:
            if one not in stay and one.is_done():
                _keep_copy(one.path, one.main, backup)
    for record in reversed(modes):
        stays = record in foreign or paths.used_since(home, log, home.path / record.path)
        if not stays and _restore_mode(home.path / record.path, record, backup, log.id):
            record.reverted = True
        else:
            left.append(record.path)
    for one in reversed(found):
        alone = _is_used_alone(home, log, one)
        outcome = STAYS if alone else one.back(backup, locked=locked)
        if outcome == STAYS:
            left += [record.path for record in one.records]
            continue
        if outcome == AS_BEFORE and is_database(one.path):
            used.append(one.main.path)
        for record in one.records:
            record.reverted = True
    for folder in sorted({(home.path / record.path).parent for record in records}):
        with contextlib.suppress(OSError):
            disk.sync_folder(folder)
    return RolledBack(left, used)


def _is_used_alone(home: Home, log: Journal, one: Switch) -> bool:
    """Whether a log or journal was moved by itself, and its database was used since.

    It does not belong to that database any more.
    """
    main = main_of(one.path)
    if not is_database(one.path) or main == one.path or not one.is_done():
        return False
    written = snapshot(main).mtime_ns >= paths.begun(log)
    return written or paths.used_since(home, log, one.path)


def used_after_switch(home: Home, log: Journal) -> list[Switch]:
    """The switches that happened, and whose database or file somebody has changed since."""
    return [one for one in switches(home, log, log.paths) if one.is_done() and one.is_used()]


def _is_ours(home: Home, record: PathRecord) -> bool:
    """Whether mode and owner of a path are as they were before the run, or as it set them."""
    now = paths.look(home.path / record.path, content=False)
    return paths.matches(now, record.before) or paths.is_ours(now, record)


def _restore_mode(path: Path, record: PathRecord, backup: Backup, run: str) -> bool:
    """Restore the mode and the owner of a path; False if its owner has to stay what it is."""
    if paths.matches(paths.look(path, content=False), record.before):
        return True
    return paths.restore(backup, backup.entry(record.path), path, run)


def _keep_copy(path: Path, record: PathRecord, backup: Backup) -> None:
    """Copy what the run made of a file into its backup, if that is possible."""
    if record.after.kind != "file" or is_database(path):
        return
    place = paths.given_back(backup) / record.path.lstrip("/")
    with contextlib.suppress(OSError):
        disk.make_folder(place.parent)
        with disk.fresh(place) as fd:
            disk.copy(path, fd)
        disk.sync_folder(place.parent)
