"""Put a database back that was deleted or renamed while the gateway had it open.

The gateway has written into the lost file until it stopped, so the file and its log are read
through our own descriptors then. Meanwhile Hermes may have created a new database at the path,
because some of its connections open it by name. The rows of that one are added to the lost one.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_doctor.backup.free_space import check_free_space
from hermes_doctor.message import count, listed, text
from hermes_doctor.model import CannotFix
from hermes_doctor.planning.lost_rows import (
    FOUND,
    WANTED,
    Rebuild,
    SavedDatabase,
    open_image,
    scratch_folder,
)
from hermes_doctor.sqlite import deleted_log
from hermes_doctor.sqlite.deleted_log import DatabaseImage
from hermes_doctor.sqlite.soundness import OK
from hermes_doctor.steps.database import ReplaceDatabase
from hermes_doctor.system import disk
from hermes_doctor.system.files import snapshot
from hermes_doctor.system.workers import run_as_owner

if TYPE_CHECKING:
    from hermes_doctor.planning.lost_rows import SavedFiles
    from hermes_doctor.steps.base import Change


def put_back(step: SavedFiles, saved: SavedDatabase, path: Path) -> Sequence[Change]:
    """The changes that put a lost database back; none if another one with data is in its place.

    If it was deleted more than once, the rows of all deleted files are put back with the first.
    """
    first, *more = [one for one in step.saved if _is_of(one, saved.open_database.database)]
    if saved is not first:
        return []
    folder = scratch_folder(step)
    _write_lost(saved, folder, WANTED)
    notes: list[str] = []
    left = {one.backup.id for one in more if not _add_deleted(step, one, folder, notes)}
    now = snapshot(path)
    if now.kind == "file" and _write_current(path, folder):
        if not deleted_log.compare_histories(folder / WANTED, folder / FOUND).started_over:
            return []
        run = step.receipts[-1].id
        left |= set() if _merge(folder, run, notes) else {run}
    step.incomplete.update(left)
    step.put_back.update((saved.open_database.database, path))
    back = (
        text("{name} is back, but without some rows of another file", name=path.name)
        if left
        else text("{name} is back with all rows that the gateway had written", name=path.name)
    )
    step.messages.extend((back, *notes))
    why = "put the database back that the gateway had open"
    *gone, change = ReplaceDatabase(path, Rebuild(folder / WANTED), why, now).changes()
    mode = stat.S_IMODE(os.fstat(saved.main).st_mode)
    return [*gone, replace(change, mode=mode)]


def _is_of(saved: SavedDatabase, database: Path) -> bool:
    return saved.open_database.replaced and saved.open_database.database == database


def _write_lost(saved: SavedDatabase, folder: Path, name: str) -> None:
    """Write the lost database as it is now, or as it was saved if that is damaged."""
    with ExitStack() as files:
        before = open_image(files, saved.copy_of(""), saved.copy_of("-wal"))
        for image in (DatabaseImage(saved.main, saved.log), before):
            check_free_space(folder, image.count * image.page_size)
            disk.remove(folder / name)
            image.write(folder / name)
            if deleted_log.verdict(folder / name) == OK:
                return
    raise CannotFix(
        text(
            "{file} is damaged. Its content is saved as backup {id}.",
            file=saved.open_database.database.name,
            id=saved.backup.id,
        )
    )


def _write_current(path: Path, folder: Path) -> bool:
    """Write the database that is at the path now; False if it has nothing that can be read.

    Then it is only kept in the backup.
    """
    with ExitStack() as files:
        current = open_image(files, path, path.with_name(path.name + "-wal"))
        if not current.count:
            return False
        check_free_space(folder, current.count * current.page_size)
        disk.remove(folder / FOUND)
        current.write(folder / FOUND)
        return deleted_log.verdict(folder / FOUND) == OK


def _add_deleted(step: SavedFiles, saved: SavedDatabase, folder: Path, notes: list[str]) -> bool:
    """Add the rows of another deleted file; return whether all of them are there."""
    _write_lost(saved, folder, FOUND)
    if deleted_log.compare_histories(folder / WANTED, folder / FOUND).common:
        lacking = deleted_log.compare(folder / FOUND, folder / WANTED)
        if not lacking.missing and not lacking.different:
            return True
        raise CannotFix(
            text(
                "{name} was deleted more than once, and the deleted files differ. They are saved "
                "as backups {ids}: restore the right one.",
                name=saved.open_database.database.name,
                ids=listed([one.backup.id for one in step.saved]),
            )
        )
    return _merge(folder, saved.backup.id, notes)


def _merge(folder: Path, backup: str, notes: list[str]) -> bool:
    """Add the rows of the other file to the lost database; return whether all were added."""
    found = run_as_owner(folder / WANTED, lambda here: _add_rows(here, folder / FOUND))
    said, left = json.loads(found)
    notes.extend(said)
    for table, rows in left.items():
        notes.append(
            text(
                "{table}: 1 row of the new database was not added; it is in backup {id}."
                if rows == 1
                else "{table}: {rows} of the new database were not added; they are in backup {id}.",
                table=table,
                rows=count(rows, "row"),
                id=backup,
            )
        )
    return not left


def _add_rows(copy: Path, source: Path) -> str:
    from hermes_doctor.sqlite.repairs.merge_rows import add_rows_of

    return json.dumps(add_rows_of(copy, source))
