"""Compare databases with what was saved before the gateway stopped, and restore their lost rows."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermes_doctor.backup.records.journal import Journal
from hermes_doctor.backup.vault.free_space import check_free_space
from hermes_doctor.backup.vault.manifest import Backup, place_of
from hermes_doctor.backup.vault.vault import HOME_FILE, PARTIAL, Vault
from hermes_doctor.core.lazy import NamedTuple
from hermes_doctor.core.message import count, listed, text
from hermes_doctor.core.model import CannotFix
from hermes_doctor.core.system import disk, progress
from hermes_doctor.core.system.files import open_regular, snapshot
from hermes_doctor.core.system.privileges import as_owner_of
from hermes_doctor.core.system.workers import run_as_owner
from hermes_doctor.diagnosis.probes.database_users import OpenFile
from hermes_doctor.diagnosis.step import Change
from hermes_doctor.repair.steps.database import ReplaceDatabase
from hermes_doctor.sqlite import deleted_log
from hermes_doctor.sqlite.deleted_log import DatabaseImage
from hermes_doctor.sqlite.examine.soundness import OK
from hermes_doctor.sqlite.repairs.merge_rows import add_rows_of

WANTED, FOUND = "wanted.db", "found.db"


@dataclass
class SavedFiles:
    """The databases that were saved before the gateway stopped, and what became of them."""

    databases: list[SavedDatabase] = field(default_factory=list)
    """The databases with their deleted logs."""
    messages: list[str] = field(default_factory=list)
    """Notes for the receipt."""
    vault: Vault | None = None
    """The vault of the run."""
    receipt: Journal | None = None
    """The receipt of the run."""
    scratch_folders: list[Path] = field(default_factory=list)
    """Temporary folders for private copies."""
    put_back: set[Path] = field(default_factory=set)
    """The databases that are at their paths again."""
    incomplete: set[str] = field(default_factory=set)
    """The backups with rows that could not be put back."""


def restoring_changes(files: SavedFiles) -> Sequence[Change]:
    """The changes that restore rows which the stopped gateway did not leave in its databases."""
    found: dict[Path, Sequence[Change]] = {}
    for saved in files.databases:
        changes = _restored(files, saved)
        if changes and saved.open_database.database in found:
            ids = listed([database.backup.id for database in files.databases])
            raise CannotFix(
                "Two deleted write-ahead logs of {database} have rows that it lacks. They are "
                "saved as backups {ids}: restore the right one.",
                database=saved.open_database.database.name,
                ids=ids,
            )
        if changes:
            found[saved.open_database.database] = changes
    return [change for changes in found.values() for change in changes]


def _restored(files: SavedFiles, saved: SavedDatabase) -> Sequence[Change]:
    """The changes for one database; raise CannotFix if this run must not restore its rows."""
    path = Path(os.path.realpath(saved.open_database.database))
    if saved.open_database.replaced:  # the current file, if any, is another database
        return put_back(files, saved, path)
    progress.report(f"comparing {path.name} with what was saved")
    with ExitStack() as opened:
        before = open_image(opened, saved.copy_of(""), saved.copy_of("-wal"))
        now = open_image(opened, path, path.with_name(path.name + "-wal"))
        ended = DatabaseImage(before.main, saved.log)
        if ended.extends(before):
            return _judged(files, saved, path, WantedContent(ended, before, now, exact=True))
        # The log was restarted after it was saved, so the database has its earlier content.
        last = DatabaseImage(now.main, saved.log)
        for wanted in (last, before):
            images = WantedContent(wanted, before, now, exact=False)
            if changes := _judged(files, saved, path, images):
                return changes
    return []


class WantedContent(NamedTuple):
    """The wanted content of a database, the saved one, and the current one."""

    wanted: DatabaseImage
    before: DatabaseImage
    now: DatabaseImage
    exact: bool
    """The database must have exactly the wanted content: only this log was written to."""


def _judged(
    files: SavedFiles, saved: SavedDatabase, path: Path, images: WantedContent
) -> Sequence[Change]:
    wanted, before, now, exact = images
    if exact and now.equals(wanted):
        return []
    room = scratch_folder(files)
    check_free_space(room, (wanted.count + now.count) * wanted.page_size)
    wanted.write(room / WANTED)
    now.write(room / FOUND)
    database_comparison = deleted_log.compare(room / WANTED, room / FOUND)
    lost = dict(database_comparison.missing)
    if exact:  # an outdated row counts as lost, too
        lost |= {
            table: lost.get(table, 0) + n for table, n in database_comparison.different.items()
        }
    if (database_comparison.first, database_comparison.second) == (OK, OK) and not lost:
        return []
    if database_comparison.first != OK and wanted is not before and not exact:
        return []  # inconclusive; the saved content is compared next
    if database_comparison.first != OK:
        raise CannotFix(
            "{file} is damaged, also with its deleted write-ahead log. Its content is saved as "
            "backup {id}.",
            file=path.name,
            id=saved.backup.id,
        )
    if database_comparison.second == OK and not now.is_made_of((before, wanted)):
        raise CannotFix(
            "{file} lacks {rows} of its deleted write-ahead log, and new rows were written "
            "since. Its content is saved as backup {id}.",
            file=path.name,
            rows=_counted(lost),
            id=saved.backup.id,
        )
    what = f"lacked {_counted(lost)}" if database_comparison.second == OK else "was damaged"
    then = "when the gateway stopped"
    if wanted is before:
        then = f"at {saved.backup.created_at.astimezone():%H:%M:%S}, before the gateway stopped"
    files.messages.append(
        f"{path.name} {what} after the gateway had stopped. It is restored with the rows of "
        f"its deleted log, as it was {then}"
    )
    why = "restore rows of its deleted write-ahead log"
    return ReplaceDatabase(path, Rebuild(room / WANTED), why, snapshot(path)).changes()


class Rebuild:
    """Replaces the copy of a database by the wanted content."""

    def __init__(self, source: Path) -> None:
        self.source = source

    def __call__(self, copy: Path) -> Sequence[str] | None:
        for suffix in ("-wal", "-journal", ""):
            disk.remove(copy.with_name(copy.name + suffix))
        with disk.new_file(copy) as fd:
            disk.copy(self.source, fd)
        return None


def _counted(lost: Mapping[str, int]) -> str:
    found = [f"{n} row{'s' * (n != 1)} of {table}" for table, n in sorted(lost.items())]
    return ", ".join(found)


def open_image(opened: ExitStack, main: Path, log: Path) -> DatabaseImage:
    there = snapshot(log).kind == "file"
    return DatabaseImage(_opened(opened, main), _opened(opened, log) if there else None)


def _opened(opened: ExitStack, path: Path) -> int:
    with as_owner_of(path) as here:
        fd = open_regular(here, follow=False)
    opened.callback(os.close, fd)
    return fd


def scratch_folder(files: SavedFiles) -> Path:
    """Make a temporary folder in the vault; if this run is killed, the next one removes it."""
    vault = files.vault
    assert vault is not None, "the files were saved in it"
    room = vault.root / (vault.next_id() + PARTIAL)
    disk.make_folder(room)
    files.scratch_folders.append(room)
    disk.save(room / HOME_FILE, str(vault.home.path).encode("utf-8", "surrogateescape"))
    return room


def remove_scratch_folder(folder: Path) -> None:
    """Remove a temporary folder made by `scratch_folder`."""
    for name in os.listdir(folder) if folder.is_dir() else ():
        disk.remove(folder / name)
    disk.remove_folder(folder)


class OpenDatabase(NamedTuple):
    """A database and one of its logs that some processes have open."""

    database: Path
    pids: tuple[int, ...]
    files: tuple[tuple[str, OpenFile], ...]
    """The suffix ("", -wal or -shm) of each file, and the open file of a process to read."""
    replaced: bool
    """The file at the database's path is now another one."""


class SavedDatabase(NamedTuple):
    """A pair that was saved in the vault, and an open descriptor of its deleted log."""

    open_database: OpenDatabase
    backup: Backup
    name: str
    """The name of the database in the backup."""
    log: int | None
    """The deleted log itself: the process may write into it until it stops."""
    main: int
    """The database itself, which may be deleted, too."""

    def copy_of(self, suffix: str) -> Path:
        """The path of a file's copy in the backup."""
        return place_of(self.backup.folder, self.name + suffix)


def put_back(files: SavedFiles, saved: SavedDatabase, path: Path) -> Sequence[Change]:
    """The changes that put a lost database back; none if another one with data is in its place.

    If it was deleted more than once, the rows of all deleted files are put back with the first.
    """
    first, *more = [
        database
        for database in files.databases
        if database.open_database.replaced
        and database.open_database.database == saved.open_database.database
    ]
    if saved is not first:
        return []
    folder = scratch_folder(files)
    _write_lost(saved, folder, WANTED)
    notes: list[str] = []
    left = {
        saved_database.backup.id
        for saved_database in more
        if not _add_deleted(files, saved_database, folder, notes)
    }
    now = snapshot(path)
    if now.kind == "file" and _write_current(path, folder):
        if not deleted_log.compare_histories(folder / WANTED, folder / FOUND).started_over:
            return []
        assert files.receipt is not None, "it was there when they were saved"
        run = files.receipt.id
        left |= set() if _merge(folder, run, notes) else {run}
    files.incomplete.update(left)
    files.put_back.update((saved.open_database.database, path))
    back = (
        text("{name} is back, but without some rows of another file", name=path.name)
        if left
        else text("{name} is back with all rows that the gateway had written", name=path.name)
    )
    files.messages.extend((back, *notes))
    why = "put the database back that the gateway had open"
    *gone, change = ReplaceDatabase(path, Rebuild(folder / WANTED), why, now).changes()
    mode = stat.S_IMODE(os.fstat(saved.main).st_mode)
    return [*gone, replace(change, mode=mode)]


def _write_lost(saved: SavedDatabase, folder: Path, name: str) -> None:
    """Write the lost database as it is now, or as it was saved if that is damaged."""
    with ExitStack() as opened:
        before = open_image(opened, saved.copy_of(""), saved.copy_of("-wal"))
        for image in (DatabaseImage(saved.main, saved.log), before):
            check_free_space(folder, image.count * image.page_size)
            disk.remove(folder / name)
            image.write(folder / name)
            if deleted_log.verdict(folder / name) == OK:
                return
    raise CannotFix(
        "{file} is damaged. Its content is saved as backup {id}.",
        file=saved.open_database.database.name,
        id=saved.backup.id,
    )


def _write_current(path: Path, folder: Path) -> bool:
    """Write the database that is at the path now; False if it has nothing that can be read.

    Then it is only kept in the backup.
    """
    with ExitStack() as opened:
        current = open_image(opened, path, path.with_name(path.name + "-wal"))
        if not current.count:
            return False
        check_free_space(folder, current.count * current.page_size)
        disk.remove(folder / FOUND)
        current.write(folder / FOUND)
        return deleted_log.verdict(folder / FOUND) == OK


def _add_deleted(files: SavedFiles, saved: SavedDatabase, folder: Path, notes: list[str]) -> bool:
    """Add the rows of another deleted file; return whether all of them are there."""
    _write_lost(saved, folder, FOUND)
    if deleted_log.compare_histories(folder / WANTED, folder / FOUND).common:
        lacking = deleted_log.compare(folder / FOUND, folder / WANTED)
        if not lacking.missing and not lacking.different:
            return True
        raise CannotFix(
            "{name} was deleted more than once, and the deleted files differ. They are saved "
            "as backups {ids}: restore the right one.",
            name=saved.open_database.database.name,
            ids=listed([database.backup.id for database in files.databases]),
        )
    return _merge(folder, saved.backup.id, notes)


def _merge(folder: Path, backup: str, notes: list[str]) -> bool:
    """Add the rows of the other file to the lost database; return whether all were added."""
    found = run_as_owner(
        folder / WANTED, lambda here: json.dumps(add_rows_of(here, (folder / FOUND)))
    )
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
