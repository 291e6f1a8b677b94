"""Compare a database with what was saved before the gateway stopped, and restore lost rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hermes_doctor.backup.free_space import check_free_space
from hermes_doctor.backup.manifest import Backup, place_of
from hermes_doctor.backup.vault import HOME_FILE, PARTIAL, Vault
from hermes_doctor.lazy import NamedTuple
from hermes_doctor.message import listed, text
from hermes_doctor.model import CannotFix
from hermes_doctor.probes.database_users import OpenFile
from hermes_doctor.sqlite import deleted_log
from hermes_doctor.sqlite.deleted_log import DatabaseImage
from hermes_doctor.sqlite.soundness import OK
from hermes_doctor.steps.base import Change
from hermes_doctor.steps.database import ReplaceDatabase
from hermes_doctor.system import disk, progress
from hermes_doctor.system.files import open_regular, snapshot
from hermes_doctor.system.privileges import as_owner_of

WANTED, FOUND = "wanted.db", "found.db"

if TYPE_CHECKING:
    from hermes_doctor.home import Home
    from hermes_doctor.records.journal import Journal


class SavedFiles(Protocol):
    """The interface of the step that saved databases before the gateway stopped."""

    @property
    def home(self) -> Home:
        """The home of the run."""

    @property
    def saved(self) -> list[SavedDatabase]:
        """The databases with their deleted logs."""

    @property
    def messages(self) -> list[str]:
        """Notes for the receipt."""

    @property
    def vaults(self) -> list[Vault]:
        """The vault of the run."""

    @property
    def scratch_folders(self) -> list[Path]:
        """Temporary folders for private copies."""

    @property
    def put_back(self) -> set[Path]:
        """The databases that are at their paths again."""

    @property
    def incomplete(self) -> set[str]:
        """The backups with rows that could not be put back."""

    @property
    def receipts(self) -> list[Journal]:
        """The receipt of the run."""


PutBack = Callable[[SavedFiles, "SavedDatabase", Path], Sequence[Change]]


def restoring_changes(step: SavedFiles, put_back: PutBack) -> Sequence[Change]:
    """The changes that restore rows which the stopped gateway did not leave in its databases.

    `put_back` is for a database that is no longer at its path.
    """
    found: dict[Path, Sequence[Change]] = {}
    for saved in step.saved:
        changes = _restored(step, saved, put_back)
        if changes and saved.open_database.database in found:
            ids = listed([one.backup.id for one in step.saved])
            raise CannotFix(
                text(
                    "Two deleted write-ahead logs of {database} have rows that it lacks. They are "
                    "saved as backups {ids}: restore the right one.",
                    database=saved.open_database.database.name,
                    ids=ids,
                )
            )
        if changes:
            found[saved.open_database.database] = changes
    return [change for changes in found.values() for change in changes]


def _restored(step: SavedFiles, saved: SavedDatabase, put_back: PutBack) -> Sequence[Change]:
    """The changes for one database; raise CannotFix if this run must not restore its rows."""
    path = Path(os.path.realpath(saved.open_database.database))
    if saved.open_database.replaced:  # the current file, if any, is another database
        return put_back(step, saved, path)
    progress.report(f"comparing {path.name} with what was saved")
    with ExitStack() as files:
        before = open_image(files, saved.copy_of(""), saved.copy_of("-wal"))
        now = open_image(files, path, path.with_name(path.name + "-wal"))
        ended = DatabaseImage(before.main, saved.log)
        if ended.extends(before):
            return _judged(step, saved, path, WantedContent(ended, before, now, exact=True))
        # The log was restarted after it was saved, so the database has its earlier content.
        last = DatabaseImage(now.main, saved.log)
        for wanted in (last, before):
            images = WantedContent(wanted, before, now, exact=False)
            if changes := _judged(step, saved, path, images):
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
    step: SavedFiles, saved: SavedDatabase, path: Path, images: WantedContent
) -> Sequence[Change]:
    wanted, before, now, exact = images
    if exact and now.equals(wanted):
        return []
    room = scratch_folder(step)
    check_free_space(room, (wanted.count + now.count) * wanted.page_size)
    wanted.write(room / WANTED)
    now.write(room / FOUND)
    said = deleted_log.compare(room / WANTED, room / FOUND)
    lost = dict(said.missing)
    if exact:  # an outdated row counts as lost, too
        lost |= {table: lost.get(table, 0) + n for table, n in said.different.items()}
    if (said.first, said.second) == (OK, OK) and not lost:
        return []
    if said.first != OK and wanted is not before and not exact:
        return []  # inconclusive; the saved content is compared next
    if said.first != OK:
        raise CannotFix(
            text(
                "{file} is damaged, also with its deleted write-ahead log. Its content is saved as "
                "backup {id}.",
                file=path.name,
                id=saved.backup.id,
            )
        )
    if said.second == OK and not now.is_made_of((before, wanted)):
        raise CannotFix(
            text(
                "{file} lacks {rows} of its deleted write-ahead log, and new rows were written "
                "since. Its content is saved as backup {id}.",
                file=path.name,
                rows=_counted(lost),
                id=saved.backup.id,
            )
        )
    what = f"lacked {_counted(lost)}" if said.second == OK else "was damaged"
    then = "when the gateway stopped"
    if wanted is before:
        then = f"at {saved.backup.created_at.astimezone():%H:%M:%S}, before the gateway stopped"
    step.messages.append(
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


def open_image(files: ExitStack, main: Path, log: Path) -> DatabaseImage:
    there = snapshot(log).kind == "file"
    return DatabaseImage(_opened(files, main), _opened(files, log) if there else None)


def _opened(files: ExitStack, path: Path) -> int:
    with as_owner_of(path) as here:
        fd = open_regular(here, follow=False)
    files.callback(os.close, fd)
    return fd


def scratch_folder(step: SavedFiles) -> Path:
    """Make a temporary folder in the vault; if this run is killed, the next one removes it."""
    [vault] = step.vaults
    room = vault.root / (vault.next_id() + PARTIAL)
    disk.make_folder(room)
    step.scratch_folders.append(room)
    disk.save(room / HOME_FILE, str(step.home.path).encode("utf-8", "surrogateescape"))
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
